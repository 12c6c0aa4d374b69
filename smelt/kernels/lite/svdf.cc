// SVDF of TensorFlow Lite on floats: a filter over the features of the last steps, of which the
// state keeps [batch, filters, memory]. Behind its output it gives the new state.
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
  UnaryF32 activation = UnaryF32::kIdentity;
  int64_t rank = 1;
  bool asymmetric = false, constant = false;
  KeptCell<SvdfCell> cell;
};

StatusOr<std::unique_ptr<KernelState>> PrepareSvdf(const Node& node) {
  auto s = std::make_unique<SvdfState>();
  s->activation = RecurrentActivation(node);
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
    } else if (time.dtype() == Dtype::kInt8) {
      c->time.push_back(static_cast<float>(time.data<int8_t>()[i]) * scale);
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
  Isa().unary[static_cast<int>(s.activation)](y, y, batch * units, 0);
  return OkStatus();
}

std::string DeclineSvdf(const Node& node) {
  if (node.num_inputs() != 5 || node.num_outputs() != 2) {
    return absl::StrCat("it has ", node.num_inputs(), " inputs");
  }
  if (node.input_types[0] != Dtype::kFloat) {
    return absl::StrCat("its input is ", DtypeName(node.input_types[0]));
  }
  return DeclineActivation(node);
}

constexpr Kernel kLiteSvdfTable[] = {
    {"tfl.svdf", "", kAnyType, "lite:svdf", RunSvdf, PrepareSvdf, DeclineSvdf},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteSvdfKernels = lite::kLiteSvdfTable;
}  // namespace smelt
