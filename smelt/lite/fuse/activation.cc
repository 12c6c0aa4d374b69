// Activations that the operator before takes in.
#include <algorithm>

#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

constexpr OpSet kTakesActivation = {"tfl.conv_2d",
                                    "tfl.depthwise_conv_2d",
                                    "tfl.fully_connected",
                                    "tfl.transpose_conv",
                                    "tfl.average_pool_2d",
                                    "tfl.max_pool_2d",
                                    "tfl.add",
                                    "tfl.sub",
                                    "tfl.mul",
                                    "tfl.div",
                                    "tfl.conv_3d",
                                    "tfl.conv_3d_transpose"};

const char* ActivationOf(const Node& n) {
  return n.Is("tfl.relu") ? "RELU" : n.Is("tfl.relu6") ? "RELU6" : "RELU_N1_TO_1";
}

// Of a difference others may read the square: squared_difference computes it from what it is of.
StatusOr<bool> TakeSquaresAway(Endpoint e, const Node& reader, Fuser& f) {
  if (!e.node->Is("tfl.sub")) return false;
  std::vector<Node*> squares;
  for (const Use& u : e.node->OrderedUses()) {
    if (u.node == &reader) continue;
    if (u.is_control() || !u.node->Is("tfl.square")) return false;
    squares.push_back(u.node);
  }
  for (Node* square : squares) {
    ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.squared_difference",
                                              {e.node->input(0), e.node->input(1)}, {}, *square));
    f.Replace(square, by);
  }
  return true;
}

// What gives some of its elements as they are, the greatest or the least among others: whether
// these are clamped before or behind it is the same.
constexpr OpSet kPassesClamps = {"tfl.reduce_max", "tfl.reduce_min",   "tfl.reshape",
                                 "tfl.squeeze",    "tfl.expand_dims",  "tfl.transpose",
                                 "tfl.slice",      "tfl.strided_slice"};

// The greatest of nothing is no element.
bool PicksElements(const Node& n) {
  if (!n.Is({"tfl.reduce_max", "tfl.reduce_min"})) return true;
  const PartialShape shape = Fuser::shape(n.input(0));
  const auto axes = Fuser::Constant(n.input(1));
  if (!shape.known_rank() || !axes || axes->dtype() != Dtype::kInt32) return false;
  return std::ranges::all_of(axes->flat<int32_t>(), [&](int32_t axis) {
    const int64_t at = axis < 0 ? axis + shape.rank() : axis;
    return at >= 0 && at < shape.rank() && shape[static_cast<int>(at)] > 0;
  });
}

bool TakesActivation(Endpoint e) {
  return e.node->Is(kTakesActivation) && Fuser::type(e) == Dtype::kFloat &&
         !HasActivation(*e.node) && Fuser::ReadOnce(e);
}

// Who takes it is before what only passes elements. The greatest of windows does both: what it
// reads, in integers on its own scale, then has no steps below zero.
Endpoint BeforePassing(Endpoint e) {
  while (Fuser::ReadOnce(e)) {
    if (e.node->Is("tfl.max_pool_2d")) {
      const Endpoint before = BeforePassing(e.node->input(0));
      return TakesActivation(e) && TakesActivation(before) ? before : e;
    }
    if (!e.node->Is(kPassesClamps) || !PicksElements(*e.node)) break;
    e = e.node->input(0);
  }
  return e;
}

StatusOr<bool> FuseActivation(Node& n, Fuser& f) {
  const Endpoint behind = n.input(0), x = BeforePassing(behind);
  if (!x.node->Is(kTakesActivation) || Fuser::type(x) != Dtype::kFloat) return false;
  if (x.node->String("fused_activation_function", "NONE") != "NONE") {
    return f.Declined(n, "what it follows has an activation");
  }
  if (!Fuser::ReadOnce(x)) {
    ASSIGN_OR_RETURN(const bool alone, TakeSquaresAway(x, n, f));
    if (!alone) return f.Declined(n, "others read what it follows");
  }
  x.node->AttrsToChange().Set("fused_activation_function", ActivationOf(n));
  f.Replace(&n, behind);
  return true;
}

// relu(concatenation(conv_2d(x), conv_2d(y))): each takes its part of it.
StatusOr<bool> FuseActivationOfParts(Node& n, Fuser& f) {
  const Endpoint x = n.input(0);
  if (!x.node->Is("tfl.concatenation")) return false;
  std::vector<Node*> takers;
  for (const Endpoint& part : x.node->inputs()) {
    const Endpoint from = BeforePassing(part);
    if (!TakesActivation(from)) return f.Declined(n, "not all that is joined takes it alone");
    takers.push_back(from.node);
  }
  if (!Fuser::ReadOnce(x)) return f.Declined(n, "others read what it follows");
  for (Node* taker : takers) {
    taker->AttrsToChange().Set("fused_activation_function", ActivationOf(n));
  }
  f.Replace(&n, x);
  return true;
}

// What an operator is clamped to: by itself, or by its activation. Nothing: it is not.
std::string ClampOf(const Node& n) {
  if (n.Is("tfl.relu")) return "RELU";
  if (n.Is("tfl.relu6")) return "RELU6";
  if (n.Is("tfl.relu_n1_to_1")) return "RELU_N1_TO_1";
  if (n.Is(kTakesActivation)) return n.String("fused_activation_function", "NONE");
  return "";
}

// relu(relu6(x)): what is clamped already stays as it is, and relu6(relu(x)) needs no relu.
StatusOr<bool> RemoveRelu(Node& n, Fuser& f) {
  const Endpoint x = n.input(0);
  const std::string inner = ClampOf(*x.node), outer = ClampOf(n);
  if (inner == outer || (outer == "RELU" && inner == "RELU6")) {
    f.Replace(&n, x);
    return true;
  }
  if (outer != "RELU6" || inner != "RELU") return false;
  if (!x.node->Is(kTakesActivation)) {
    f.SetInput(&n, 0, x.node->input(0));
    return true;
  }
  if (!Fuser::ReadOnce(x)) return f.Declined(n, "others read what it follows");
  x.node->AttrsToChange().Set("fused_activation_function", "RELU6");
  f.Replace(&n, x);
  return true;
}

constexpr Fusion kActivationFusions[] = {
    {"RemoveRelu",
     {"tfl.relu", "tfl.relu6", "tfl.relu_n1_to_1"},
     RemoveRelu,
     "relu(relu6(x)) -> relu6(x), relu6(relu(x)) -> relu6(x), and of activations"},
    {"FuseActivation",
     {"tfl.relu", "tfl.relu6", "tfl.relu_n1_to_1"},
     FuseActivation,
     "relu(conv_2d(x)) -> conv_2d(x) with an activation, with a max_pool_2d, a slice... between "
     "too"},
    {"FuseActivationOfParts",
     {"tfl.relu", "tfl.relu6", "tfl.relu_n1_to_1"},
     FuseActivationOfParts,
     "relu(concatenation(conv_2d(x), conv_2d(y))) -> concatenation of both with an activation"},
};

}  // namespace

std::span<const Fusion> ActivationFusions() { return kActivationFusions; }

}  // namespace smelt
