// LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM of TensorFlow Lite on floats;
// the first two on int8 as well.
// Behind their own outputs they give the new states (lite/lower/recurrent.cc), in the order of the
// inputs that they come from.
#include "absl/strings/str_cat.h"
#include "smelt/kernels/lite/integer_lstm.h"
#include "smelt/kernels/lite/lstm_cell.h"
#include "smelt/kernels/lite/recurrence.h"

namespace smelt::lite {
namespace {

constexpr LstmPlaces kOneDirection = {.weights = 1,
                                      .recurrent = 5,
                                      .peephole = 9,
                                      .bias = 12,
                                      .projection = 16,
                                      .projection_bias = 17,
                                      .state = 18,
                                      .cell = 19,
                                      .norm = 20};
constexpr LstmPlaces kLstmForward = {.weights = 1,
                                     .recurrent = 5,
                                     .peephole = 9,
                                     .bias = 12,
                                     .projection = 16,
                                     .projection_bias = 17,
                                     .state = 35,
                                     .cell = 36,
                                     .aux = 40};
constexpr LstmPlaces kLstmBackward = {.weights = 18,
                                      .recurrent = 22,
                                      .peephole = 26,
                                      .bias = 29,
                                      .projection = 33,
                                      .projection_bias = 34,
                                      .state = 37,
                                      .cell = 38,
                                      .aux = 44};
constexpr int kLstmAux = 39;
// Of an LSTM of one direction that is calibrated (lite/quantize): it gives [kCount, 2] floats, the
// least and the greatest of each, before its new states.
constexpr absl::string_view kGivesRanges = "_gives_ranges";

struct SequenceState final : KernelState {
  LstmOptions options;
  bool time_major = false, merge = false, constant = false;
  bool ranges = false;  // output 1 is what LstmRanges has
  KeptCell<LstmCell> forward, backward;
};

StatusOr<std::unique_ptr<KernelState>> PrepareLstmSequence(const Node& node) {
  auto s = std::make_unique<SequenceState>();
  s->options = {.activation = RecurrentActivationOf(node),
                .cell_clip = node.Float("cell_clip"),
                .proj_clip = node.Float("proj_clip"),
                .asymmetric = node.Bool("asymmetric_quantize_inputs")};
  s->time_major = node.Bool("time_major");
  s->merge = node.Bool("merge_outputs");
  s->ranges = node.Bool(kGivesRanges);
  s->constant = node.Is("tfl.bidirectional_sequence_lstm")
                    ? WeightsAreConstant(node, 1, {35, 36, 37, 38, kLstmAux})
                    : WeightsAreConstant(node, 1, {18, 19});
  return s;
}

StatusOr<std::shared_ptr<const LstmCell>> CellOf(const OpContext& ctx, const SequenceState& s,
                                                 const LstmPlaces& p, KeptCell<LstmCell>& kept) {
  return kept.Get(s.constant, [&] { return LstmCell::Make(ctx, p, s.options); });
}

// Runs one direction. `out`: of rows of `width` floats.
Status RunDirection(OpContext& ctx, const LstmCell& cell, const LstmPlaces& p,
                    const SequenceShape& d, const float* x, const float* aux, bool backwards,
                    int states, float* out, int64_t width, LstmRanges* ranges = nullptr) {
  if (d.depth != cell.inputs()) {
    return InvalidArgument("rows of ", d.depth, " for weights of ", cell.inputs());
  }
  LstmCell::Sequence s = {.x = x,
                          .aux = aux,
                          .out = out,
                          .steps = d.steps,
                          .batch = d.batch,
                          .step_rows = d.step_rows,
                          .batch_rows = d.batch_rows,
                          .out_width = width,
                          .backwards = backwards,
                          .state = nullptr,
                          .cell = nullptr,
                          .ranges = ranges};
  ASSIGN_OR_RETURN(s.state, TakeState<float>(ctx, p.state, d.batch, cell.outputs(), states));
  ASSIGN_OR_RETURN(s.cell, TakeState<float>(ctx, p.cell, d.batch, cell.cells(), states + 1));
  return cell.Run(s, ctx.step());
}

// One direction, whose rows are those of `d`.
Status RunOne(OpContext& ctx, const SequenceShape& d) {
  auto& s = ctx.state<SequenceState>();
  const Tensor& x = ctx.input(0);
  ASSIGN_OR_RETURN(const auto cell, CellOf(ctx, s, kOneDirection, s.forward));
  ASSIGN_OR_RETURN(const Shape shape, WithWidth(x.shape(), cell->outputs()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  LstmRanges ranges;
  RETURN_IF_ERROR(RunDirection(ctx, *cell, kOneDirection, d, x.data<float>(), nullptr, false,
                               s.ranges ? 2 : 1, out->data<float>(), cell->outputs(),
                               s.ranges ? &ranges : nullptr));
  if (!s.ranges) return OkStatus();
  ASSIGN_OR_RETURN(Tensor * seen, ctx.Allocate(1, Shape({LstmRanges::kCount, 2})));
  for (int i = 0; i < LstmRanges::kCount; ++i) {
    seen->data<float>()[2 * i] = ranges.low[i];
    seen->data<float>()[2 * i + 1] = ranges.high[i];
  }
  return OkStatus();
}

Status RunUnidirectional(OpContext& ctx) {
  ASSIGN_OR_RETURN(const SequenceShape d,
                   SequenceOf(ctx.input(0).shape(), ctx.state<SequenceState>().time_major));
  return RunOne(ctx, d);
}

// One step.
Status RunLstm(OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() != 2) return InvalidArgument("its input has the shape ", x.shape().ToString());
  return RunOne(ctx, {1, x.dim(0), x.dim(1), x.dim(0), 1});
}

Status RunBidirectional(OpContext& ctx) {
  auto& s = ctx.state<SequenceState>();
  const Tensor& x = ctx.input(0);
  ASSIGN_OR_RETURN(const SequenceShape d, SequenceOf(x.shape(), s.time_major));
  ASSIGN_OR_RETURN(const auto forward, CellOf(ctx, s, kLstmForward, s.forward));
  ASSIGN_OR_RETURN(const auto backward, CellOf(ctx, s, kLstmBackward, s.backward));
  const bool has_aux = ctx.num_inputs() > kLstmAux && !IsLeftOut(ctx.input(kLstmAux));
  const Tensor* aux = has_aux ? &ctx.input(kLstmAux) : nullptr;
  const bool crosses = forward->aux_inputs() > 0 || backward->aux_inputs() > 0;
  if (crosses && aux == nullptr) return InvalidArgument("its auxiliary input is left out");
  // Without weights of its own the auxiliary input is what goes backwards.
  const Tensor& x_back = aux != nullptr && !crosses ? *aux : x;
  SequenceShape d_back = d;
  if (aux != nullptr) {
    ASSIGN_OR_RETURN(const SequenceShape a, SequenceOf(aux->shape(), s.time_major));
    if (a.steps != d.steps || a.batch != d.batch ||
        (crosses && (a.depth != forward->aux_inputs() || a.depth != backward->aux_inputs()))) {
      return InvalidArgument("its auxiliary input has the shape ", aux->shape().ToString());
    }
    if (!crosses) d_back.depth = a.depth;
  }
  const float* of_aux = crosses ? aux->data<float>() : nullptr;
  const int64_t first = forward->outputs(), second = backward->outputs();
  ASSIGN_OR_RETURN(const Shape shape, WithWidth(x.shape(), s.merge ? first + second : first));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  float* to = out->data<float>();
  int states = 1;
  float* to_back = to + first;
  if (!s.merge) {
    ASSIGN_OR_RETURN(const Shape behind, WithWidth(x.shape(), second));
    ASSIGN_OR_RETURN(Tensor * back, ctx.Allocate(1, behind));
    to_back = back->data<float>();
    states = 2;
  }
  RETURN_IF_ERROR(RunDirection(ctx, *forward, kLstmForward, d, x.data<float>(), of_aux, false,
                               states, to, s.merge ? first + second : first));
  return RunDirection(ctx, *backward, kLstmBackward, d_back, x_back.data<float>(), of_aux, true,
                      states + 2, to_back, s.merge ? first + second : second);
}

struct IntegerState final : KernelState {
  bool time_major = false, constant = false;
  KeptCell<IntegerLstm> cell;
};

StatusOr<std::unique_ptr<KernelState>> PrepareIntegerLstm(const Node& node) {
  auto s = std::make_unique<IntegerState>();
  s->time_major = node.Bool("time_major");
  s->constant = WeightsAreConstant(node, 1, {18, 19});
  return s;
}

Status RunIntegerLstm(OpContext& ctx) {
  auto& s = ctx.state<IntegerState>();
  const Tensor& x = ctx.input(0);
  SequenceShape d;
  if (!ctx.node().Is("tfl.lstm")) {
    ASSIGN_OR_RETURN(d, SequenceOf(x.shape(), s.time_major));
  } else if (x.rank() == 2) {
    d = {1, x.dim(0), x.dim(1), x.dim(0), 1};
  } else {
    return InvalidArgument("its input has the shape ", x.shape().ToString());
  }
  ASSIGN_OR_RETURN(const auto cell,
                   s.cell.Get(s.constant, [&] { return IntegerLstm::Make(ctx, kOneDirection); }));
  if (d.depth != cell->inputs()) {
    return InvalidArgument("rows of ", d.depth, " for weights of ", cell->inputs());
  }
  ASSIGN_OR_RETURN(const Shape shape, WithWidth(x.shape(), cell->outputs()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  IntegerLstm::Sequence run = {.x = x.data<int8_t>(),
                               .out = out->data<int8_t>(),
                               .steps = d.steps,
                               .batch = d.batch,
                               .step_rows = d.step_rows,
                               .batch_rows = d.batch_rows,
                               .together = d.batch_rows == 1,
                               .state = nullptr,
                               .cell = nullptr};
  ASSIGN_OR_RETURN(run.state,
                   TakeState<int8_t>(ctx, kOneDirection.state, d.batch, cell->outputs(), 1));
  ASSIGN_OR_RETURN(run.cell,
                   TakeState<int16_t>(ctx, kOneDirection.cell, d.batch, cell->cells(), 2));
  return cell->Run(run, ctx.step());
}

std::string DeclineIntegerLstm(const Node& node) {
  if (node.Is("tfl.lstm") && node.String("kernel_type", "FULL") != "FULL") {
    return "it is a basic LSTM";
  }
  if (node.num_inputs() < 20) return absl::StrCat("it has ", node.num_inputs(), " inputs");
  if (node.num_outputs() != 3) return absl::StrCat("it has ", node.num_outputs() - 2, " outputs");
  if (node.input_types[0] != Dtype::kInt8 || node.output_types[0] != Dtype::kInt8) {
    return absl::StrCat("its input is ", DtypeName(node.input_types[0]));
  }
  // LiteRT looks at no activation but tanh.
  if (node.Bool("diagonal_recurrent_tensors")) return "its recurrent weights are diagonals";
  return "";
}

std::string DeclineLstm(const Node& node, int least, int states, int outputs) {
  if (node.num_inputs() < least) return absl::StrCat("it has ", node.num_inputs(), " inputs");
  if (node.num_outputs() != outputs + states) {
    return absl::StrCat("it has ", node.num_outputs() - states, " outputs");
  }
  return DeclineFloatCell(node);
}
std::string DeclineOneLstm(const Node& node) {
  if (node.Is("tfl.lstm") && node.String("kernel_type", "FULL") != "FULL") {
    return "it is a basic LSTM";
  }
  return DeclineLstm(node, 20, 2, node.Bool(kGivesRanges) ? 2 : 1);
}
std::string DeclineTwoLstms(const Node& node) {
  if (node.num_inputs() > kLstmAux && node.input_types[kLstmAux] != Dtype::kFloat) {
    return "its auxiliary input is not float";
  }
  return DeclineLstm(node, 39, 4, node.Bool("merge_outputs") ? 1 : 2);
}

// ---- the basic kernel, on uint8 with a cell of int16: states are inputs and outputs. That on
// floats is made of ops (lite/lower/recurrent.cc).

// Of what goes in and comes out, whatever the file says of its scales.
constexpr int32_t kRowZero = 128;
constexpr int kGateBits = 3, kStateBits = 4;  // before the point

struct BasicLstmState final : KernelState {
  int32_t weight_zero = 0;
  Factor factor;  // of sums, to gates with 12 bits behind the point
};

StatusOr<std::unique_ptr<KernelState>> PrepareBasicLstm(const Node& node) {
  auto s = std::make_unique<BasicLstmState>();
  const Affine weights = InputAffine(node, 2), bias = InputAffine(node, 3);
  if (weights.scales.size() != 1 || bias.scales.size() != 1) {
    return InvalidArgument("its weights or their bias have no scale of their own");
  }
  const float state = OutputAffine(node, 1).scale();
  if (state != std::ldexp(1.0f, kStateBits - 15)) {
    return Unimplemented("its cell state has the scale ", state);
  }
  s->weight_zero = weights.zero();
  s->factor = FactorOf(4096 * static_cast<double>(bias.scale()));
  return s;
}

Status RunBasicLstm(OpContext& ctx) {
  const auto& s = ctx.state<BasicLstmState>();
  const Tensor &x = ctx.input(0), &h = ctx.input(1), &w = ctx.input(2), &bias = ctx.input(3),
               &cell = ctx.input(4);
  const bool matrices = x.rank() == 2 && h.rank() == 2 && w.rank() == 2;
  const int64_t batch = matrices ? x.dim(0) : 0, cells = matrices ? h.dim(1) : 0;
  const int64_t depth = matrices ? x.dim(1) + cells : 0;
  if (!matrices || h.dim(0) != batch || !(w.shape() == Shape({4 * cells, depth})) ||
      !(bias.shape() == Shape({4 * cells})) || !(cell.shape() == h.shape())) {
    return InvalidArgument("its inputs are ", x.shape().ToString(), ", ", h.shape().ToString(),
                           ", ", w.shape().ToString(), ", ", bias.shape().ToString(), ", ",
                           cell.shape().ToString());
  }
  ASSIGN_OR_RETURN(Tensor * answer, ctx.Allocate(0, h.shape()));
  ASSIGN_OR_RETURN(Tensor * kept, ctx.Allocate(1, h.shape()));
  ASSIGN_OR_RETURN(Tensor * joined, ctx.Allocate(2, Shape({batch, depth})));
  ASSIGN_OR_RETURN(Tensor * gates, ctx.Allocate(3, Shape({batch, 4 * cells})));
  const FixedTable &sigmoid = SigmoidTable(), &tanh = TanhTable(kGateBits);
  const auto saturated = [](int32_t x) {
    return static_cast<int16_t>(std::clamp(x, -32768, 32767));
  };
  for (int64_t b = 0; b < batch; ++b) {
    auto* row = joined->data<uint8_t>() + b * depth;
    std::copy_n(h.data<uint8_t>() + b * cells, cells,
                std::copy_n(x.data<uint8_t>() + b * (depth - cells), depth - cells, row));
    auto* gate = gates->data<int16_t>() + b * 4 * cells;
    for (int64_t u = 0; u < 4 * cells; ++u) {
      const auto* weights = w.data<uint8_t>() + u * depth;
      auto sum = static_cast<uint32_t>(bias.data<int32_t>()[u]);
      for (int64_t i = 0; i < depth; ++i) {
        sum += static_cast<uint32_t>((weights[i] - s.weight_zero) * (row[i] - kRowZero));
      }
      gate[u] = saturated(TimesUp(static_cast<int32_t>(sum), s.factor));
    }
    // Gates lie side by side: input, what is new, forget, output.
    for (int64_t c = 0; c < cells; ++c) {
      const int64_t at = b * cells + c;
      const int16_t fresh = FixedProduct(At(sigmoid, gate[c]), At(tanh, gate[cells + c]));
      const int16_t left = FixedProduct(At(sigmoid, gate[2 * cells + c]), cell.data<int16_t>()[at]);
      const int16_t state = saturated(FixedLowered(fresh, kStateBits) + left);
      const int16_t out = FixedProduct(At(sigmoid, gate[3 * cells + c]),
                                       At(tanh, FixedRaised(state, kStateBits - kGateBits)));
      kept->data<int16_t>()[at] = state;
      answer->data<uint8_t>()[at] =
          static_cast<uint8_t>(kRowZero + std::clamp<int32_t>(FixedLowered(out, 8), -128, 127));
    }
  }
  return OkStatus();
}

std::string DeclineBasicLstm(const Node& node) {
  if (node.String("kernel_type", "FULL") != "BASIC") return "it is a full LSTM";
  if (node.num_inputs() != 5 || node.num_outputs() != 4) {
    return absl::StrCat("it has ", node.num_inputs(), " inputs and ", node.num_outputs(),
                        " outputs");
  }
  constexpr Dtype kIn[] = {Dtype::kUint8, Dtype::kUint8, Dtype::kUint8, Dtype::kInt32,
                           Dtype::kInt16};
  constexpr Dtype kOut[] = {Dtype::kUint8, Dtype::kInt16, Dtype::kUint8, Dtype::kInt16};
  for (size_t i = 0; i < std::size(kIn); ++i) {
    if (node.input_types[i] != kIn[i]) {
      return absl::StrCat("its input ", i, " is ", DtypeName(node.input_types[i]));
    }
  }
  for (size_t i = 0; i < std::size(kOut); ++i) {
    if (node.output_types[i] != kOut[i]) {
      return absl::StrCat("its output ", i, " is ", DtypeName(node.output_types[i]));
    }
  }
  return "";
}

constexpr Kernel kLiteLstmTable[] = {
    {"tfl.lstm", "", kAnyType, "lite:lstm", RunLstm, PrepareLstmSequence, DeclineOneLstm},
    {"tfl.unidirectional_sequence_lstm", "", kAnyType, "lite:sequence_lstm", RunUnidirectional,
     PrepareLstmSequence, DeclineOneLstm},
    {"tfl.lstm", "", kAnyType, "lite:integer_lstm", RunIntegerLstm, PrepareIntegerLstm,
     DeclineIntegerLstm},
    {"tfl.unidirectional_sequence_lstm", "", kAnyType, "lite:integer_sequence_lstm", RunIntegerLstm,
     PrepareIntegerLstm, DeclineIntegerLstm},
    {"tfl.lstm", "", kAnyType, "lite:basic_lstm", RunBasicLstm, PrepareBasicLstm, DeclineBasicLstm},
    {"tfl.bidirectional_sequence_lstm", "", kAnyType, "lite:bidirectional_lstm", RunBidirectional,
     PrepareLstmSequence, DeclineTwoLstms},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteLstmKernels = lite::kLiteLstmTable;
}  // namespace smelt
