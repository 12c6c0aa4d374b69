// RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN of TensorFlow Lite on floats:
// h' = activation(x * W + h * R + b). Behind their own outputs they give the new states.
#include "absl/strings/str_cat.h"
#include "smelt/kernels/common/cancellable.h"
#include "smelt/kernels/lite/gate_product.h"
#include "smelt/kernels/lite/recurrence.h"

namespace smelt::lite {
namespace {

struct RnnCell {
  GateProduct x, h;
  std::optional<GateProduct> aux;
  std::vector<float> bias;
};

// Which inputs a direction reads.
struct RnnPlaces {
  int weights, recurrent, bias, state, aux;
};
constexpr RnnPlaces kRnnForward = {1, 2, 3, 4, 10};
constexpr RnnPlaces kRnnBackward = {5, 6, 7, 8, 11};
constexpr int kRnnAux = 9;

struct RnnState final : KernelState {
  RecurrentActivation activation = RecurrentActivation::kNone;
  bool time_major = false, merge = false, asymmetric = false, constant = false;
  KeptCell<RnnCell> forward, backward;
};

StatusOr<std::unique_ptr<KernelState>> PrepareRnn(const Node& node) {
  auto s = std::make_unique<RnnState>();
  s->activation = RecurrentActivationOf(node);
  s->time_major = node.Bool("time_major");
  s->merge = node.Bool("merge_outputs");
  s->asymmetric = node.Bool("asymmetric_quantize_inputs");
  s->constant = WeightsAreConstant(node, 1, {4, 8, kRnnAux});
  return s;
}

StatusOr<GateProduct> MatrixOf(const OpContext& ctx, int i, bool asymmetric) {
  if (ctx.input(i).rank() != 2) {
    return InvalidArgument("input ", i, " has the shape ", ctx.input(i).shape().ToString());
  }
  const GateProduct::Gate gate = {&ctx.input(i), InputAffine(ctx.node(), i).scale()};
  return GateProduct::Make({&gate, 1}, asymmetric);
}

StatusOr<std::shared_ptr<const RnnCell>> MakeRnn(const OpContext& ctx, const RnnPlaces& p,
                                                 bool asymmetric) {
  auto c = std::make_shared<RnnCell>();
  ASSIGN_OR_RETURN(c->x, MatrixOf(ctx, p.weights, asymmetric));
  ASSIGN_OR_RETURN(c->h, MatrixOf(ctx, p.recurrent, asymmetric));
  const int64_t units = c->x.columns();
  if (c->h.columns() != units || c->h.depth() != units) {
    return InvalidArgument("its recurrent weights are ", ctx.input(p.recurrent).shape().ToString(),
                           " for ", units, " units");
  }
  const Tensor& bias = ctx.input(p.bias);
  if (bias.dtype() != Dtype::kFloat || bias.num_elements() != units) {
    return InvalidArgument("its bias is ", DtypeName(bias.dtype()), bias.shape().ToString(),
                           " for ", units, " units");
  }
  c->bias.assign(bias.data<float>(), bias.data<float>() + units);
  if (p.aux < ctx.num_inputs() && !(ctx.input(p.aux).shape() == Shape({0}))) {
    ASSIGN_OR_RETURN(c->aux, MatrixOf(ctx, p.aux, asymmetric));
    if (c->aux->columns() != units) return InvalidArgument("input ", p.aux, " is of other units");
  }
  return std::shared_ptr<const RnnCell>(std::move(c));
}

// Rows of out have `width` floats.
Status RunSequence(const Step& owner, const RnnCell& c, RecurrentActivation activation,
                   const SequenceShape& d, const float* x, const float* aux, bool backwards,
                   float* state, float* out, int64_t width) {
  if (d.batch == 0) return OkStatus();
  const int64_t units = c.x.columns();
  const auto copy = [&](const float* from, int64_t depth, int64_t t, std::vector<float>& rows) {
    rows.resize(static_cast<size_t>(d.batch * depth));
    for (int64_t b = 0; b < d.batch; ++b) {
      std::copy_n(from + (t * d.step_rows + b * d.batch_rows) * depth, depth,
                  rows.begin() + b * depth);
    }
  };
  std::vector<float> rows, sums(static_cast<size_t>(d.batch * units));
  for (int64_t step = 0; step < d.steps; ++step) {
    RETURN_IF_ERROR(CheckStep(owner));
    const int64_t t = backwards ? d.steps - 1 - step : step;
    for (int64_t b = 0; b < d.batch; ++b) {
      std::copy(c.bias.begin(), c.bias.end(), sums.begin() + b * units);
    }
    copy(x, c.x.depth(), t, rows);
    c.x.Add(rows.data(), d.batch, sums.data());
    if (c.aux) {
      copy(aux, c.aux->depth(), t, rows);
      c.aux->Add(rows.data(), d.batch, sums.data());
    }
    c.h.Add(state, d.batch, sums.data());
    Activate(activation, sums.data(), state, d.batch * units);
    for (int64_t b = 0; b < d.batch; ++b) {
      std::copy_n(state + b * units, units, out + (t * d.step_rows + b * d.batch_rows) * width);
    }
  }
  return OkStatus();
}

Status CheckDepth(int64_t depth, const GateProduct& weights) {
  if (depth == weights.depth()) return OkStatus();
  return InvalidArgument("rows of ", depth, " for weights of ", weights.depth());
}

Status RunOneWay(OpContext& ctx) {
  auto& s = ctx.state<RnnState>();
  const Tensor& x = ctx.input(0);
  SequenceShape d;
  if (ctx.node().Is("tfl.rnn")) {
    if (x.rank() != 2) return InvalidArgument("its input has the shape ", x.shape().ToString());
    d = {1, x.dim(0), x.dim(1), x.dim(0), 1};
  } else {
    ASSIGN_OR_RETURN(d, SequenceOf(x.shape(), s.time_major));
  }
  ASSIGN_OR_RETURN(const auto cell, s.forward.Get(s.constant, [&] {
    return MakeRnn(ctx, {1, 2, 3, 4, ctx.num_inputs()}, s.asymmetric);
  }));
  RETURN_IF_ERROR(CheckDepth(d.depth, cell->x));
  const int64_t units = cell->x.columns();
  ASSIGN_OR_RETURN(const Shape shape, WithWidth(x.shape(), units));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  ASSIGN_OR_RETURN(float* state, TakeState<float>(ctx, kRnnForward.state, d.batch, units, 1));
  return RunSequence(ctx.step(), *cell, s.activation, d, x.data<float>(), nullptr, false, state,
                     out->data<float>(), units);
}

Status RunBothWays(OpContext& ctx) {
  auto& s = ctx.state<RnnState>();
  const Tensor& x = ctx.input(0);
  ASSIGN_OR_RETURN(const SequenceShape d, SequenceOf(x.shape(), s.time_major));
  ASSIGN_OR_RETURN(const auto forward, s.forward.Get(s.constant, [&] {
    return MakeRnn(ctx, kRnnForward, s.asymmetric);
  }));
  ASSIGN_OR_RETURN(const auto backward, s.backward.Get(s.constant, [&] {
    return MakeRnn(ctx, kRnnBackward, s.asymmetric);
  }));
  const bool has_aux = ctx.num_inputs() > kRnnAux && !(ctx.input(kRnnAux).shape() == Shape({0}));
  const bool crosses = forward->aux || backward->aux;
  if (crosses && !has_aux) return InvalidArgument("its auxiliary input is left out");
  const Tensor& aux = has_aux ? ctx.input(kRnnAux) : x;
  ASSIGN_OR_RETURN(const SequenceShape a, SequenceOf(aux.shape(), s.time_major));
  if (a.steps != d.steps || a.batch != d.batch) {
    return InvalidArgument("its auxiliary input has the shape ", aux.shape().ToString());
  }
  // Without weights of its own the auxiliary input is what goes backwards.
  const Tensor& x_back = crosses ? x : aux;
  RETURN_IF_ERROR(CheckDepth(d.depth, forward->x));
  RETURN_IF_ERROR(CheckDepth(crosses ? d.depth : a.depth, backward->x));
  if (forward->aux) RETURN_IF_ERROR(CheckDepth(a.depth, *forward->aux));
  if (backward->aux) RETURN_IF_ERROR(CheckDepth(a.depth, *backward->aux));
  const int64_t first = forward->x.columns(), second = backward->x.columns();
  ASSIGN_OR_RETURN(const Shape shape, WithWidth(x.shape(), s.merge ? first + second : first));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  float* to_back = out->data<float>() + first;
  if (!s.merge) {
    ASSIGN_OR_RETURN(const Shape behind, WithWidth(x.shape(), second));
    ASSIGN_OR_RETURN(Tensor * back, ctx.Allocate(1, behind));
    to_back = back->data<float>();
  }
  const int states = s.merge ? 1 : 2;
  ASSIGN_OR_RETURN(float* h, TakeState<float>(ctx, kRnnForward.state, d.batch, first, states));
  ASSIGN_OR_RETURN(float* h_back,
                   TakeState<float>(ctx, kRnnBackward.state, d.batch, second, states + 1));
  RETURN_IF_ERROR(RunSequence(ctx.step(), *forward, s.activation, d, x.data<float>(),
                              aux.data<float>(), false, h, out->data<float>(),
                              s.merge ? first + second : first));
  return RunSequence(ctx.step(), *backward, s.activation, d, x_back.data<float>(),
                     aux.data<float>(), true, h_back, to_back, s.merge ? first + second : second);
}

std::string DeclineRnn(const Node& node, int least, int outputs) {
  if (node.num_inputs() < least) return absl::StrCat("it has ", node.num_inputs(), " inputs");
  if (node.num_outputs() != outputs) {
    return absl::StrCat("it has ", node.num_outputs(), " outputs and states");
  }
  return DeclineFloatCell(node);
}
std::string DeclineOneWay(const Node& node) { return DeclineRnn(node, 5, 2); }
std::string DeclineBothWays(const Node& node) {
  if (node.num_inputs() > kRnnAux && node.input_types[kRnnAux] != Dtype::kFloat) {
    return "its auxiliary input is not float";
  }
  return DeclineRnn(node, 9, node.Bool("merge_outputs") ? 3 : 4);
}

constexpr Kernel kLiteRnnTable[] = {
    {"tfl.rnn", "", kAnyType, "lite:rnn", RunOneWay, PrepareRnn, DeclineOneWay},
    {"tfl.unidirectional_sequence_rnn", "", kAnyType, "lite:sequence_rnn", RunOneWay, PrepareRnn,
     DeclineOneWay},
    {"tfl.bidirectional_sequence_rnn", "", kAnyType, "lite:bidirectional_rnn", RunBothWays,
     PrepareRnn, DeclineBothWays},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteRnnKernels = lite::kLiteRnnTable;
}  // namespace smelt
