#include "smelt/lite/composites/lstm.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/composites/composite.h"

namespace smelt {

StatusOr<Endpoint> LitePart(Endpoint e, std::vector<int64_t> begin, std::vector<int64_t> sizes,
                            Legalizer& l) {
  if (const auto value = l.Constant(e)) {
    AttrMap attrs;
    attrs.Set("T", value->dtype());
    attrs.Set("Index", Dtype::kInt64);
    ASSIGN_OR_RETURN(auto part, Evaluate("Slice",
                                         {*value, Tensor::Vector(std::span<const int64_t>(begin)),
                                          Tensor::Vector(std::span<const int64_t>(sizes))},
                                         std::move(attrs)));
    return l.Const(part[0]);
  }
  return l.Add("tfl.slice", {e, l.Ints(begin), l.Ints(sizes)}, {},
               {l.type(e), PartialShape::Of(sizes)});
}

StatusOr<Endpoint> LiteTransposed(Endpoint e, Legalizer& l) {
  if (const auto value = l.Constant(e)) {
    ASSIGN_OR_RETURN(const Tensor moved, Transposed(*value, {1, 0}));
    return l.Const(moved);
  }
  const PartialShape from = l.shape(e);
  return l.Add("tfl.transpose", {e, l.Ints(std::array<int64_t, 2>{1, 0})}, {},
               {l.type(e), PartialShape::Of(std::vector<int64_t>{from[1], from[0]})});
}

StatusOr<std::vector<Endpoint>> LiteRowBlocks(Endpoint e, int64_t parts, Legalizer& l) {
  const PartialShape shape = l.shape(e);
  std::vector<int64_t> begin(static_cast<size_t>(shape.rank()), 0), sizes;
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  sizes[0] /= parts;
  std::vector<Endpoint> out;
  for (int64_t p = 0; p < parts; ++p, begin[0] += sizes[0]) {
    ASSIGN_OR_RETURN(out.emplace_back(), LitePart(e, begin, sizes, l));
  }
  return out;
}

namespace {

// Of an operator whose outputs another writes into: no other of the same inputs stands for it.
void MakeVariable(AttrMap& options, Legalizer& l) {
  options.Set(kVariableOutputs, true);
  options.Set(kOwnOutputs, int64_t{l.graph().max_id()});
}

}  // namespace

StatusOr<std::vector<Endpoint>> VariableStates(std::span<const Endpoint> states, Legalizer& l) {
  std::vector<Tensor> constants;
  for (const Endpoint& e : states) {
    const auto value = l.Constant(e);
    if (!value || !(value->shape() == l.Constant(states[0])->shape())) break;
    constants.push_back(*value);
  }
  if (constants.size() == states.size()) {
    const auto count = static_cast<int64_t>(states.size());
    AttrMap attrs;
    attrs.Set("T", constants[0].dtype());
    attrs.Set("N", count);
    attrs.Set("axis", int64_t{0});
    ASSIGN_OR_RETURN(const auto all, Evaluate("Pack", constants, std::move(attrs)));
    AttrMap options = Options({{"num", count}});
    MakeVariable(options, l);
    const std::vector<LiteOutput> outputs(states.size(), {l.type(states[0]), l.shape(states[0])});
    const Endpoint packed = l.Const(all[0]);
    ASSIGN_OR_RETURN(Node * n, l.AddMany("tfl.unpack", {&packed, 1}, std::move(options), outputs));
    std::vector<Endpoint> out;
    for (int i = 0; i < count; ++i) out.push_back({n, i});
    return out;
  }
  std::vector<Endpoint> out;
  for (const Endpoint& from : states) {
    AttrMap options;
    MakeVariable(options, l);
    const LiteOutput output = {l.type(from), l.shape(from)};
    if (output.shape.fully_known()) {
      ASSIGN_OR_RETURN(out.emplace_back(),
                       l.Add("tfl.tile", {from, l.Ints(std::array<int64_t, 2>{1, 1})},
                             std::move(options), output));
      continue;
    }
    // LiteRT books memory for a variable before it knows sizes that other operators tell, but an
    // operator that sizes its own output brings the memory.
    const Node& fill = *BehindIdentities(from).node;
    if (!fill.Is("Fill")) return Unimplemented("its states have free sizes, and are not zeros");
    ASSIGN_OR_RETURN(out.emplace_back(),
                     l.Add("tfl.fill", {fill.input(0), fill.input(1)}, std::move(options), output));
  }
  return out;
}

StatusOr<Endpoint> AddSequenceLstm(const SequenceLstm& lstm, Legalizer& l) {
  const std::array<Endpoint, 2> first = {lstm.hidden, lstm.cell};
  ASSIGN_OR_RETURN(const auto states, VariableStates(first, l));
  const Endpoint none = l.NoValue();
  std::vector<Endpoint> inputs = {lstm.input};
  const auto add = [&](std::span<const Endpoint> list) {
    inputs.insert(inputs.end(), list.begin(), list.end());
  };
  add(lstm.weights);
  add(lstm.recurrent);
  inputs.insert(inputs.end(), 3, none);  // from the cell to the gates
  add(lstm.bias);
  inputs.insert(inputs.end(), 2, none);  // projection
  add(states);
  inputs.insert(inputs.end(), 4, none);  // layer normalization
  AttrMap options = Options({{"fused_activation_function", std::string(lstm.activation)}});
  if (lstm.cell_clip != 0) options.Set("cell_clip", lstm.cell_clip);
  if (lstm.time_major) options.Set("time_major", true);
  if (lstm.diagonal) options.Set("diagonal_recurrent_tensors", true);
  return l.Add("tfl.unidirectional_sequence_lstm", inputs, std::move(options), lstm.output);
}

namespace {

// What TensorFlow's converter gives these operators; cells beyond it are clipped.
constexpr float kCellClip = 10.0f;

// [inputs + outputs, gates * cells] has the blocks of the gates cell, input (unless it is coupled
// to the forget gate), forget, output, one beside the other.
LiteEndpoints SimpleCell(const CompositeCall& call, bool normalized, Legalizer& l) {
  const Node& n = call.node;
  const bool coupled = absl::StrContains(call.implements.name, ",CoupleInputForgetGates");
  const int wanted = normalized ? 5 : 4;
  if (n.num_inputs() < wanted || n.num_outputs() != 1) {
    return Unimplemented("it has ", n.num_inputs(), " arguments and ", n.num_outputs(),
                         " results in place of ", wanted, " and 1");
  }
  const Endpoint input = n.input(0), weight = n.input(1), bias = n.input(2);
  const Endpoint projection = n.input(3);
  for (int i = 0; i < wanted; ++i) {
    if (l.rank(n.input(i)) < 0) return Unimplemented("the rank of argument ", i, " is not known");
  }
  const int64_t gates = coupled ? 3 : 4;
  const PartialShape w = l.shape(weight), p = l.shape(projection), b = l.shape(bias);
  if (w.rank() != 2 || !w.fully_known() || w[1] % gates != 0) {
    return Unimplemented("its weights ", w.ToString(), " do not hold ", gates, " gates");
  }
  const int64_t cells = w[1] / gates;
  if (p.rank() != 2 || !p.fully_known() || p[0] != cells || p[1] >= w[0]) {
    return Unimplemented("its projection ", p.ToString(), " does not fit its weights ",
                         w.ToString());
  }
  if (b.rank() != 1 || b[0] != w[1]) {
    return Unimplemented("its bias ", b.ToString(), " does not fit its weights ", w.ToString());
  }
  const int64_t outputs = p[1], inputs = w[0] - outputs;
  if (l.rank(input) != 2) return Unimplemented("its input is no matrix");
  const int64_t batch = std::max<int64_t>(l.shape(input)[0], 1);

  ASSIGN_OR_RETURN(const Endpoint rows, LiteTransposed(weight, l));
  const Endpoint none = l.NoValue();
  // Where the block of a gate begins; gates as the operator has them.
  const int64_t at[4] = {coupled ? -1 : cells, coupled ? cells : 2 * cells, 0,
                         coupled ? 2 * cells : 3 * cells};
  std::vector<Endpoint> in = {input};
  for (const int64_t begin : at) {
    if (begin < 0) {
      in.push_back(none);
      continue;
    }
    ASSIGN_OR_RETURN(in.emplace_back(), LitePart(rows, {begin, 0}, {cells, inputs}, l));
  }
  for (const int64_t begin : at) {
    if (begin < 0) {
      in.push_back(none);
      continue;
    }
    ASSIGN_OR_RETURN(in.emplace_back(), LitePart(rows, {begin, inputs}, {cells, outputs}, l));
  }
  in.insert(in.end(), 3, none);  // from the cell to the gates
  for (const int64_t begin : at) {
    if (begin < 0) {
      in.push_back(none);
      continue;
    }
    ASSIGN_OR_RETURN(in.emplace_back(), LitePart(bias, {begin}, {cells}, l));
  }
  ASSIGN_OR_RETURN(in.emplace_back(), LiteTransposed(projection, l));
  ASSIGN_OR_RETURN(const Tensor zeros, Tensor::Zeros(Dtype::kFloat, Shape({outputs})));
  in.push_back(l.Const(zeros));
  // This operator goes on where the last run ended: a run is a step.
  for (const int64_t size : {outputs, cells}) {
    AttrMap attrs;
    attrs.Set("dtype", Dtype::kFloat);
    attrs.Set("shape", PartialShape::Of(std::vector<int64_t>{batch, size}));
    ASSIGN_OR_RETURN(Node * state,
                     l.graph().Add(absl::StrCat(n.name(), "/state"), "tfl.variable", {}, attrs));
    in.push_back({state, 0});
  }
  if (!normalized) {
    in.insert(in.end(), 4, none);
  } else {
    const PartialShape scale = l.shape(n.input(4));
    if (scale.rank() != 1 || scale[0] != 4 * cells) {
      return Unimplemented("its scales of the layer normalization are ", scale.ToString(),
                           ", not a vector of ", 4 * cells);
    }
    for (const int64_t begin : {cells, 2 * cells, int64_t{0}, 3 * cells}) {
      ASSIGN_OR_RETURN(in.emplace_back(), LitePart(n.input(4), {begin}, {cells}, l));
    }
  }
  const LiteOutput output = {Dtype::kFloat, PartialShape::Of(std::vector<int64_t>{batch, outputs})};
  ASSIGN_OR_RETURN(
      const Endpoint e,
      l.Add("tfl.lstm", in,
            Options({{"fused_activation_function", "TANH"}, {"cell_clip", kCellClip}}), output));
  return std::vector<Endpoint>{e};
}

LiteEndpoints CellSimple(const CompositeCall& call, Legalizer& l) {
  return SimpleCell(call, false, l);
}
LiteEndpoints NormalizedCell(const CompositeCall& call, Legalizer& l) {
  return SimpleCell(call, true, l);
}

// A matrix for four gates side by side, or, where each cell reads itself alone, a vector.
bool HoldsRecurrent(const PartialShape& shape, int64_t units, bool diagonal) {
  if (!diagonal) return shape.rank() == 2 && shape[0] == units && shape[1] == 4 * units;
  for (int i = 0; i + 1 < shape.rank(); ++i) {
    if (shape[i] != 1) return false;
  }
  return shape.rank() > 0 && shape[shape.rank() - 1] == 4 * units;
}

// Keras' LSTM: inputs, both states, kernel [inputs, 4 * units], recurrent kernel, bias, gates in
// our order; it gives the last output, all of them, the states, and a number.
LiteEndpoints KerasLayer(const CompositeCall& call, bool diagonal, Legalizer& l) {
  Node& n = call.node;
  if (n.num_inputs() == 7) return Unimplemented("its operator takes no mask");
  RETURN_IF_ERROR(CheckCounts(call, 6, 5));
  for (int i = 2; i < 5; ++i) {
    if (n.NumUses(i) > 0) return Unimplemented("its states are read");
  }
  const Attr* major = call.function.attrs.Find("time_major");
  const bool* time_major = major == nullptr ? nullptr : major->get<bool>();
  if (time_major == nullptr) return Unimplemented("the function has no attribute 'time_major'");
  const Attr* back = call.function.attrs.Find("go_backwards");
  const bool* backwards = back == nullptr ? nullptr : back->get<bool>();
  const PartialShape x = l.shape(n.input(0));
  const PartialShape kernel = l.shape(n.input(3)), recurrent = l.shape(n.input(4));
  const PartialShape bias = l.shape(n.input(5));
  if (x.rank() != 3) return Unimplemented("its input is no batch of sequences");
  for (const int i : {1, 2}) {
    if (!l.shape(n.input(i)).fully_known()) {
      return Unimplemented("its batch is free: only a model of a fixed batch states the sizes of ",
                           "its states");
    }
  }
  if (kernel.rank() != 2 || !kernel.fully_known() || kernel[1] % 4 != 0) {
    return Unimplemented("its kernel ", kernel.ToString(), " does not hold four gates");
  }
  const int64_t units = kernel[1] / 4;
  if (!HoldsRecurrent(recurrent, units, diagonal) || bias.rank() != 1 || bias[0] != 4 * units) {
    return Unimplemented("its recurrent kernel ", recurrent.ToString(), " or bias ",
                         bias.ToString(), " does not fit its kernel ", kernel.ToString());
  }
  SequenceLstm lstm;
  lstm.time_major = *time_major;
  lstm.diagonal = diagonal;
  lstm.cell_clip = kCellClip;
  lstm.input = n.input(0);
  if (backwards != nullptr && *backwards) {
    const int64_t axis = *time_major ? 0 : 1;
    ASSIGN_OR_RETURN(lstm.input,
                     l.Add("tfl.reverse_v2", {lstm.input, l.Ints(std::array<int64_t, 1>{axis})}, {},
                           {l.type(lstm.input), x}));
  }
  lstm.hidden = n.input(1);
  lstm.cell = n.input(2);
  const auto take = [&](StatusOr<Endpoint> matrix, std::array<Endpoint, 4>& gates) -> Status {
    RETURN_IF_ERROR(matrix.status());
    ASSIGN_OR_RETURN(const std::vector<Endpoint> blocks, LiteRowBlocks(*matrix, 4, l));
    std::ranges::copy(blocks, gates.begin());
    return OkStatus();
  };
  RETURN_IF_ERROR(take(LiteTransposed(n.input(3), l), lstm.weights));
  if (diagonal) {
    const auto value = l.Constant(n.input(4));
    if (!value) return Unimplemented("its recurrent weights are not constant");
    RETURN_IF_ERROR(take(l.Const(value->WithShape(Shape({4 * units}))), lstm.recurrent));
  } else {
    RETURN_IF_ERROR(take(LiteTransposed(n.input(4), l), lstm.recurrent));
  }
  RETURN_IF_ERROR(take(n.input(5), lstm.bias));
  lstm.output = {Dtype::kFloat, PartialShape::Of(std::vector<int64_t>{x[0], x[1], units})};
  ASSIGN_OR_RETURN(const Endpoint all, AddSequenceLstm(lstm, l));
  std::vector<Endpoint> by(5);
  by[1] = all;
  const std::array<int64_t, 3> zero = {0, 0, 0};
  const std::array<int64_t, 3> one = {1, 1, 1};
  std::array<int64_t, 3> last = {0, -1, 0};
  if (*time_major) last = {-1, 0, 0};
  const int64_t masks = *time_major ? 6 : 5, shrink = *time_major ? 1 : 2;
  ASSIGN_OR_RETURN(
      by[0],
      l.Add(
          "tfl.strided_slice", {all, l.Ints(last), l.Ints(zero), l.Ints(one)},
          Options({{"begin_mask", masks}, {"end_mask", int64_t{7}}, {"shrink_axis_mask", shrink}}),
          {Dtype::kFloat, PartialShape::Of(std::vector<int64_t>{x[*time_major ? 1 : 0], units})}));
  // Nobody reads them.
  for (size_t i = 2; i < 5; ++i) by[i] = l.Floats(0);
  return by;
}

LiteEndpoints Keras(const CompositeCall& call, Legalizer& l) { return KerasLayer(call, false, l); }
LiteEndpoints Independent(const CompositeCall& call, Legalizer& l) {
  return KerasLayer(call, true, l);
}

// As TensorFlow's converter has them (kCellClip); what functions of these names compute clips
// nothing.
constexpr absl::string_view kClips = "cell states are clipped to -10 and 10";

constexpr Composite kLstmRows[] = {
    {"LSTMCellSimple", ImplementsKind::kString, true, CellSimple, "a step of an LSTM", kClips},
    {"LayerNormalizedLstmCellSimple", ImplementsKind::kString, false, NormalizedCell,
     "a step of an LSTM with normalized gates", kClips},
};
constexpr Composite kKerasRows[] = {
    {"lstm_", ImplementsKind::kApi, true, Keras, "Keras' LSTM", kClips},
    {"indy_lstm_", ImplementsKind::kApi, true, Independent, "an LSTM of independent cells", kClips},
};

}  // namespace

std::span<const Composite> LstmComposites() { return kLstmRows; }
std::span<const Composite> KerasComposites() { return kKerasRows; }

}  // namespace smelt
