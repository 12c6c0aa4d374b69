// BatchNormWithGlobalNormalization and its gradient: TensorFlow's first batch norm, over the last
// dimension.
#include <cmath>
#include <vector>

#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/kernel.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

struct GlobalNormState final : KernelState {
  float epsilon = 0;
  bool scale = false;  // gamma takes part
};

StatusOr<std::unique_ptr<KernelState>> PrepareGlobalNorm(const Node& node) {
  auto s = std::make_unique<GlobalNormState>();
  s->epsilon = node.Float("variance_epsilon");
  s->scale = node.Bool("scale_after_normalization");
  return s;
}

Status CheckGlobalNorm(const OpContext& ctx, std::initializer_list<absl::string_view> names) {
  if (ctx.input(0).rank() != 4) {
    return InvalidArgument("input must be 4-dimensional", ctx.input(0).shape().ToString());
  }
  int i = 1;
  for (const absl::string_view name : names) {
    const Tensor& t = ctx.input(i++);
    if (t.rank() != 1) {
      return InvalidArgument(name, " must be 1-dimensional", t.shape().ToString());
    }
    if (t.dim(0) != ctx.input(0).dim(3)) {
      return InvalidArgument(
          "Must provide as many means, variances, betas and gammas as the last "
          "dimension of the input tensor: ",
          t.shape().ToString(), " vs. ", ctx.input(0).shape().ToString());
    }
  }
  return OkStatus();
}

// Half is computed in float.
template <typename T>
Status GlobalNorm(OpContext& ctx) {
  using W = Wide<T>;
  const auto& s = ctx.state<GlobalNormState>();
  RETURN_IF_ERROR(CheckGlobalNorm(ctx, {"mean", "var", "beta", "gamma"}));
  const Tensor& in = ctx.input(0);
  const int64_t depth = in.dim(3);
  const T *mean = ctx.input(1).data<T>(), *var = ctx.input(2).data<T>();
  const T *beta = ctx.input(3).data<T>(), *gamma = ctx.input(4).data<T>();
  std::vector<W> factor;
  for (int64_t c = 0; c < depth; ++c) {
    const W inverse = W(1) / std::sqrt(static_cast<W>(var[c]) + static_cast<W>(s.epsilon));
    factor.push_back(s.scale ? inverse * static_cast<W>(gamma[c]) : inverse);
  }
  const T* x = in.data<T>();
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, in.shape()));
  T* y = out->data<T>();
  for (int64_t i = 0; i < out->num_elements(); ++i) {
    const int64_t c = i % depth;
    y[i] = T((static_cast<W>(x[i]) - static_cast<W>(mean[c])) * factor[static_cast<size_t>(c)] +
             static_cast<W>(beta[c]));
  }
  return OkStatus();
}

template <typename T>
Status GlobalNormGrad(OpContext& ctx) {
  using W = Wide<T>;
  const auto& s = ctx.state<GlobalNormState>();
  RETURN_IF_ERROR(CheckGlobalNorm(ctx, {"mean", "var", "gamma"}));
  const Tensor in = ctx.input(0), grad = ctx.input(4);
  if (grad.rank() != 4) {
    return InvalidArgument("out_backprop must be 4-dimensional", grad.shape().ToString());
  }
  if (!(grad.shape() == in.shape())) {
    return InvalidArgument("out_backprop must have the shape of the input, ", in.shape().ToString(),
                           ", not ", grad.shape().ToString());
  }
  const int64_t depth = in.dim(3);
  const T *x = in.data<T>(), *g = grad.data<T>();
  const T *mean = ctx.input(1).data<T>(), *var = ctx.input(2).data<T>(),
          *gamma = ctx.input(3).data<T>();
  std::vector<W> sums(static_cast<size_t>(depth), W(0)), products = sums, factor;
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    const auto c = static_cast<size_t>(i % depth);
    sums[c] += static_cast<W>(g[i]);
    products[c] += static_cast<W>(g[i]) * (static_cast<W>(x[i]) - static_cast<W>(mean[c]));
  }
  ASSIGN_OR_RETURN(Tensor * dx, ctx.Allocate(0, in.shape()));
  T* to[4];  // of mean, variance, beta, gamma
  for (int i = 0; i < 4; ++i) {
    ASSIGN_OR_RETURN(Tensor * t, ctx.Allocate(i + 1, Shape({depth})));
    to[i] = t->data<T>();
  }
  for (int64_t i = 0; i < depth; ++i) {
    const auto c = static_cast<size_t>(i);
    const W inverse = W(1) / std::sqrt(static_cast<W>(var[c]) + static_cast<W>(s.epsilon));
    const W scale = s.scale ? static_cast<W>(gamma[c]) : W(1);
    factor.push_back(inverse * scale);
    to[0][c] = T(-sums[c] * inverse * scale);
    to[1][c] = T(products[c] * inverse * inverse * inverse * scale * W(-0.5));
    to[2][c] = T(sums[c]);
    to[3][c] = T(s.scale ? products[c] * inverse : W(0));
  }
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    dx->data<T>()[i] = T(static_cast<W>(g[i]) * factor[static_cast<size_t>(i % depth)]);
  }
  return OkStatus();
}

template <bool kGradient>
Status RunGlobalNorm(OpContext& ctx) {
  return VisitOneOf(CppTypes<float, double, Half>(), ctx.output_type(0), [&]<typename T>() {
    return kGradient ? GlobalNormGrad<T>(ctx) : GlobalNorm<T>(ctx);
  });
}

constexpr DtypeSet kGlobalNormTypes = Types(Dtype::kFloat, Dtype::kDouble, Dtype::kHalf);

constexpr Kernel kGlobalNormTable[] = {
    {"BatchNormWithGlobalNormalization", "T", kGlobalNormTypes, "reference:global_norm",
     RunGlobalNorm<false>, PrepareGlobalNorm},
    {"BatchNormWithGlobalNormalizationGrad", "T", kGlobalNormTypes, "reference:global_norm",
     RunGlobalNorm<true>, PrepareGlobalNorm},
};

}  // namespace

extern constinit const std::span<const Kernel> kGlobalNormKernels = kGlobalNormTable;

}  // namespace smelt
