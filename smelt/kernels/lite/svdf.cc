// SVDF of TensorFlow Lite, on floats and on int8: a filter over the features of the last steps, of
// which the state keeps [batch, filters, memory]. Behind its output it gives the new state.
#include "absl/strings/str_cat.h"
#include "smelt/kernels/lite/gate_product.h"
#include "smelt/kernels/lite/recurrence.h"

namespace smelt::lite {
namespace {

struct SvdfCell {
  GateProduct features;
  std::vector<float> time;  // [filters, memory]
  std::vector<float> bias;  // of a unit; empty: none
  int64_t memory = 0;
};

struct SvdfState final : KernelState {
  RecurrentActivation activation = RecurrentActivation::kNone;
  int64_t rank = 1;
  bool asymmetric = false, constant = false;
  KeptCell<SvdfCell> cell;
};

StatusOr<std::unique_ptr<KernelState>> PrepareSvdf(const Node& node) {
  auto s = std::make_unique<SvdfState>();
  s->activation = RecurrentActivationOf(node);
  s->rank = node.Int("rank");
  s->asymmetric = node.Bool("asymmetric_quantize_inputs");
  s->constant = WeightsAreConstant(node, 1, {4});
  if (s->rank < 1) return InvalidArgument("its rank is ", s->rank);
  return s;
}

StatusOr<std::shared_ptr<const SvdfCell>> MakeSvdf(const OpContext& ctx, int64_t rank,
                                                   bool asymmetric) {
  auto c = std::make_shared<SvdfCell>();
  const Tensor &features = ctx.input(1), &time = ctx.input(2), &bias = ctx.input(3);
  if (features.rank() != 2 || time.rank() != 2 || time.dim(0) != features.dim(0) ||
      features.dim(0) % rank != 0 || time.dim(1) < 1) {
    return InvalidArgument("its weights are ", features.shape().ToString(), " and ",
                           time.shape().ToString(), ", its rank ", rank);
  }
  const GateProduct::Gate gate = {&features, InputAffine(ctx.node(), 1).scale()};
  ASSIGN_OR_RETURN(c->features, GateProduct::Make({&gate, 1}, asymmetric));
  c->memory = time.dim(1);
  const float scale = InputAffine(ctx.node(), 2).scale();
  for (int64_t i = 0; i < time.num_elements(); ++i) {
    if (time.dtype() == Dtype::kFloat) {
      c->time.push_back(time.data<float>()[i]);
    } else if (const int8_t* steps = StepsOf(time)) {
      c->time.push_back(static_cast<float>(steps[i]) * scale);
    } else {
      return Unimplemented("its weights of time are ", DtypeName(time.dtype()));
    }
  }
  if (bias.num_elements() == 0) return std::shared_ptr<const SvdfCell>(std::move(c));
  if (bias.dtype() != Dtype::kFloat || bias.num_elements() != features.dim(0) / rank) {
    return InvalidArgument("its bias is ", DtypeName(bias.dtype()), bias.shape().ToString(),
                           " for ", features.dim(0) / rank, " units");
  }
  c->bias.assign(bias.data<float>(), bias.data<float>() + bias.num_elements());
  return std::shared_ptr<const SvdfCell>(std::move(c));
}

Status RunSvdf(OpContext& ctx) {
  auto& s = ctx.state<SvdfState>();
  const Tensor& x = ctx.input(0);
  ASSIGN_OR_RETURN(const auto cell,
                   s.cell.Get(s.constant, [&] { return MakeSvdf(ctx, s.rank, s.asymmetric); }));
  const int64_t filters = cell->features.columns(), units = filters / s.rank;
  if (x.rank() != 2 || x.dim(1) != cell->features.depth()) {
    return InvalidArgument("an input of the shape ", x.shape().ToString(), " for weights of ",
                           cell->features.depth());
  }
  const int64_t batch = x.dim(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({batch, units})));
  ASSIGN_OR_RETURN(float* state, TakeState<float>(ctx, 4, batch, filters * cell->memory, 1));
  std::vector<float> features(static_cast<size_t>(batch * filters), 0.0f);
  cell->features.Add(x.data<float>(), batch, features.data());
  float* y = out->data<float>();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t u = 0; u < units; ++u) {
      float sum = cell->bias.empty() ? 0 : cell->bias[static_cast<size_t>(u)];
      for (int64_t f = u * s.rank; f < (u + 1) * s.rank; ++f) {
        float* kept = state + (b * filters + f) * cell->memory;
        std::copy(kept + 1, kept + cell->memory, kept);
        kept[cell->memory - 1] = features[static_cast<size_t>(b * filters + f)];
        sum += Isa().dot(cell->time.data() + f * cell->memory, kept, cell->memory);
      }
      y[b * units + u] = sum;
    }
  }
  Activate(s.activation, y, y, batch * units);
  return OkStatus();
}

std::string DeclineSvdf(const Node& node) {
  if (node.num_inputs() != 5 || node.num_outputs() != 2) {
    return absl::StrCat("it has ", node.num_inputs(), " inputs");
  }
  return DeclineFloatCell(node);
}

// ---- int8, with a state and weights of time of int16

struct IntegerSvdfState final : KernelState {
  int64_t rank = 1;
  int32_t input_zero = 0, output_zero = 0;
  Factor of_features, of_sums;
};

StatusOr<std::unique_ptr<KernelState>> PrepareIntegerSvdf(const Node& node) {
  auto s = std::make_unique<IntegerSvdfState>();
  s->rank = node.Int("rank");
  if (s->rank < 1) return InvalidArgument("its rank is ", s->rank);
  const Affine x = InputAffine(node, 0), features = InputAffine(node, 1),
               time = InputAffine(node, 2), state = InputAffine(node, 4), out = OutputAffine(node);
  for (const Affine* a : {&x, &features, &time, &state, &out}) {
    if (a->scales.size() != 1) return InvalidArgument("a tensor of it has no scale of its own");
  }
  s->input_zero = x.zero();
  s->output_zero = out.zero();
  s->of_features = FactorOf(static_cast<double>(x.scale() * features.scale() / state.scale()));
  s->of_sums = FactorOf(static_cast<double>(state.scale() * time.scale() / out.scale()));
  return s;
}

// Sums wrap around, as in TensorFlow Lite.
int32_t Dot(const int16_t* a, const int16_t* b, int64_t n) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<uint32_t>(int32_t{a[i]} * int32_t{b[i]});
  return static_cast<int32_t>(sum);
}

Status RunIntegerSvdf(OpContext& ctx) {
  const auto& s = ctx.state<IntegerSvdfState>();
  const Tensor &x = ctx.input(0), &features = ctx.input(1), &time = ctx.input(2),
               &bias = ctx.input(3);
  if (features.rank() != 2 || time.rank() != 2 || time.dim(0) != features.dim(0) ||
      features.dim(0) % s.rank != 0 || time.dim(1) < 1) {
    return InvalidArgument("its weights are ", features.shape().ToString(), " and ",
                           time.shape().ToString(), ", its rank ", s.rank);
  }
  const int64_t filters = features.dim(0), depth = features.dim(1), memory = time.dim(1);
  const int64_t units = filters / s.rank;
  if (x.rank() != 2 || x.dim(1) != depth) {
    return InvalidArgument("an input of the shape ", x.shape().ToString(), " for weights of ",
                           depth);
  }
  const bool biased = bias.num_elements() > 0;
  if (biased && (bias.dtype() != Dtype::kInt32 || bias.num_elements() != units)) {
    return InvalidArgument("its bias is ", DtypeName(bias.dtype()), bias.shape().ToString(),
                           " for ", units, " units");
  }
  const int64_t batch = x.dim(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({batch, units})));
  ASSIGN_OR_RETURN(int16_t * state, TakeState<int16_t>(ctx, 4, batch, filters * memory, 1));
  auto* y = out->data<int8_t>();
  for (int64_t b = 0; b < batch; ++b) {
    const int8_t* row = x.data<int8_t>() + b * depth;
    for (int64_t u = 0; u < units; ++u) {
      auto sum = static_cast<uint32_t>(biased ? bias.data<int32_t>()[u] : 0);
      for (int64_t f = u * s.rank; f < (u + 1) * s.rank; ++f) {
        const int8_t* w = features.data<int8_t>() + f * depth;
        uint32_t feature = 0;
        for (int64_t i = 0; i < depth; ++i) {
          feature += static_cast<uint32_t>(w[i] * (row[i] - s.input_zero));
        }
        int16_t* kept = state + (b * filters + f) * memory;
        std::copy(kept + 1, kept + memory, kept);
        kept[memory - 1] = static_cast<int16_t>(
            std::clamp(Times(static_cast<int32_t>(feature), s.of_features), -32768, 32767));
        sum += static_cast<uint32_t>(Dot(time.data<int16_t>() + f * memory, kept, memory));
      }
      const int32_t steps = Times(static_cast<int32_t>(sum), s.of_sums);
      y[b * units + u] = static_cast<int8_t>(std::clamp(steps + s.output_zero, -128, 127));
    }
  }
  return OkStatus();
}

std::string DeclineIntegerSvdf(const Node& node) {
  if (node.num_inputs() != 5 || node.num_outputs() != 2) {
    return absl::StrCat("it has ", node.num_inputs(), " inputs");
  }
  constexpr Dtype kTypes[] = {Dtype::kInt8, Dtype::kInt8, Dtype::kInt16};
  for (int i = 0; i < 3; ++i) {
    const Dtype type = node.input_types[static_cast<size_t>(i)];
    if (type != kTypes[i]) return absl::StrCat("its input ", i, " is ", DtypeName(type));
  }
  if (node.output_types[0] != Dtype::kInt8) {
    return absl::StrCat("its output is ", DtypeName(node.output_types[0]));
  }
  // LiteRT takes this one alone, and lets the output's range stand for it.
  const std::string activation = node.String("fused_activation_function", "NONE");
  return activation == "RELU" ? "" : absl::StrCat("its activation is ", activation);
}

constexpr Kernel kLiteSvdfTable[] = {
    {"tfl.svdf", "", kAnyType, "lite:svdf", RunSvdf, PrepareSvdf, DeclineSvdf},
    {"tfl.svdf", "", kAnyType, "lite:integer_svdf", RunIntegerSvdf, PrepareIntegerSvdf,
     DeclineIntegerSvdf},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteSvdfKernels = lite::kLiteSvdfTable;
}  // namespace smelt
