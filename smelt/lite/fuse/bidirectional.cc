// Two recurrences over the same sequence, one of them backwards: on request one operator.
#include <algorithm>

#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

bool Reverses(const Node& n, int64_t axis) {
  const auto axes = n.Is("tfl.reverse_v2") ? IntsOf(n.input(1)) : std::nullopt;
  if (!axes || axes->size() != 1) return false;
  const int rank = Fuser::shape(n.input(0)).rank();
  return ((*axes)[0] < 0 ? (*axes)[0] + rank : (*axes)[0]) == axis;
}

// Inputs of one direction, as unidirectional_sequence_lstm has them.
constexpr int kInputWeights = 1, kRecurrentWeights = 5, kPeephole = 9, kBiases = 12,
              kProjection = 16, kStates = 18, kNormalization = 20;

// Where the operator has them: the first of each direction's.
struct Place {
  int from, count, forward, backward;
};
constexpr Place kPlaces[] = {
    {kInputWeights, 4, 1, 18}, {kRecurrentWeights, 4, 5, 22}, {kPeephole, 3, 9, 26},
    {kBiases, 4, 12, 29},      {kProjection, 2, 16, 33},      {kStates, 2, 35, 37},
};
constexpr int kInputs = 48;

bool SameOptions(const Node& a, const Node& b) {
  return a.Float("cell_clip") == b.Float("cell_clip") &&
         a.Float("proj_clip") == b.Float("proj_clip") &&
         a.Bool("time_major") == b.Bool("time_major") && !a.Bool("diagonal_recurrent_tensors") &&
         !b.Bool("diagonal_recurrent_tensors") &&
         a.String("fused_activation_function") == b.String("fused_activation_function");
}

StatusOr<bool> FuseBidirectionalLstm(Node& n, Fuser& f) {
  if (n.num_inputs() != 2 || HasActivation(n)) return false;
  const Node& forward = *n.input(0).node;
  const Node& turned = *n.input(1).node;
  const OpName op = "tfl.unidirectional_sequence_lstm";
  if (!forward.Is(op) || !turned.Is("tfl.reverse_v2") || !turned.input(0).node->Is(op)) {
    return false;
  }
  const Node& backward = *turned.input(0).node;
  const int rank = Fuser::shape({&n, 0}).rank();
  if (rank != 3 || (n.Int("axis") != 2 && n.Int("axis") != -1)) {
    return f.Declined(n, "it does not join what both directions give for a step");
  }
  const int64_t time = forward.Bool("time_major") ? 0 : 1;
  // Measured: of more sequences LiteRT's kernel writes past its scratch, and answers at random.
  if (Fuser::shape({&n, 0})[static_cast<int>(1 - time)] != 1) {
    return f.Declined(n, "LiteRT's kernel is right for one sequence at a time alone (--batch 1)");
  }
  const Endpoint x = forward.input(0);
  const Node& reversed = *backward.input(0).node;
  if (!Reverses(turned, time) || !Reverses(reversed, time) || !(reversed.input(0) == x)) {
    return f.Declined(n, "the second direction does not run backwards over the same");
  }
  if (!SameOptions(forward, backward)) return f.Declined(n, "the directions have other options");
  for (const Node* lstm : {&forward, &backward}) {
    for (int i = kNormalization; i < lstm->num_inputs(); ++i) {
      if (!lstm->input(i).node->Is("tfl.no_value")) {
        return f.Declined(n, "its operator has no layer normalization");
      }
    }
  }
  if (!Fuser::ReadOnce(n.input(0)) || !Fuser::ReadOnce(n.input(1)) ||
      !Fuser::ReadOnce(turned.input(0))) {
    return f.Declined(n, "others read one direction");
  }
  ASSIGN_OR_RETURN(Node * none, f.graph().Add(n.name(), "tfl.no_value", {}));
  std::vector<Endpoint> inputs(kInputs, Endpoint{none, 0});
  inputs[0] = x;
  for (const Place& p : kPlaces) {
    for (int i = 0; i < p.count; ++i) {
      inputs[static_cast<size_t>(p.forward + i)] = forward.input(p.from + i);
      inputs[static_cast<size_t>(p.backward + i)] = backward.input(p.from + i);
    }
  }
  AttrMap options;
  options.Set("merge_outputs", true);
  options.Set("time_major", forward.Bool("time_major"));
  options.Set("cell_clip", forward.Float("cell_clip"));
  options.Set("proj_clip", forward.Float("proj_clip"));
  options.Set("fused_activation_function", forward.String("fused_activation_function"));
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add("tfl.bidirectional_sequence_lstm", inputs, std::move(options), n));
  f.Replace(&n, by);
  return true;
}

constexpr Fusion kBidirectionalFusions[] = {
    {.name = "FuseBidirectionalLstm",
     .ops = {"tfl.concatenation"},
     .apply = FuseBidirectionalLstm,
     .what = "concatenation(lstm(x), reverse_v2(lstm(reverse_v2(x)))) -> "
             "bidirectional_sequence_lstm(x), on request alone",
     .on_request = true},
};

}  // namespace

std::span<const Fusion> BidirectionalFusions() { return kBidirectionalFusions; }

}  // namespace smelt
