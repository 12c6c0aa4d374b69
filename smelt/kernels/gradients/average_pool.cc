// Gradients of average pooling: each gradient is divided evenly among the pixels of its window.
#include <cstring>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/nn/pool.h"

namespace smelt {
namespace {

struct AveragePoolGradState final : KernelState {
  nn::PoolAttrs attrs;
};

StatusOr<std::unique_ptr<KernelState>> PrepareAveragePoolGrad(const Node& node) {
  const int spatial = node.Is("AvgPool3DGrad") ? 3 : 2;
  const absl::string_view format = spatial == 3 ? "NDHWC" : "NHWC";
  if (node.String("data_format", std::string(format)) != format) {
    return InvalidArgument("Default Avg", spatial == 3 ? "Pooling3d" : "Pooling",
                           "GradOp only supports ", format, " on device type CPU");
  }
  auto s = std::make_unique<AveragePoolGradState>();
  ASSIGN_OR_RETURN(s->attrs, nn::ParsePoolAttrs(node, nn::PoolKind::kAvg, spatial));
  if (s->attrs.ksize.back() != 1 || s->attrs.strides.back() != 1) {
    return Unimplemented("Non-spatial pooling is not yet supported. Volunteers? :)");
  }
  for (const int64_t k : s->attrs.ksize) {
    if (k <= 0) return InvalidArgument("ksize must be positive, got: ", k);
  }
  return s;
}

StatusOr<Shape> AveragePoolInput(const Tensor& sizes, int rank) {
  if (sizes.rank() != 1 || sizes.num_elements() != rank) {
    return InvalidArgument(rank == 5 ? "tensor_in" : "out_backprop", " must be 1-dimensional and ",
                           rank, " elements");
  }
  for (int i = 0; i < rank; ++i) {
    if (IndexAt(sizes, i) >= 0) continue;
    return InvalidArgument("Expected a non-negative size, got ", IndexAt(sizes, i));
  }
  return CheckedShape(IntsOf(sizes));
}

// There are as many windows as `grad` has pixels, which may be fewer than the input makes, or more
// by one that lies outside of the image and is skipped.
template <typename T>
void ShareOut(const nn::PoolView& v, int64_t batch, int64_t depth, const T* grad, T* out) {
  std::fill(out, out + batch * v.in_pixels() * depth, T(0));
  for (int64_t item = 0; item < batch * v.out_pixels(); ++item) {
    T* image = out + item / v.out_pixels() * v.in_pixels() * depth;
    const T* g = grad + item * depth;
    int64_t count = 0;
    v.ForWindow(item % v.out_pixels(), [&](int64_t) { ++count; });
    if (count == 0) continue;
    const T share = T(1) / static_cast<T>(count);
    v.ForWindow(item % v.out_pixels(), [&](int64_t pixel) {
      for (int64_t c = 0; c < depth; ++c) image[pixel * depth + c] += g[c] * share;
    });
  }
}

Status RunAveragePoolGrad(OpContext& ctx) {
  const auto& s = ctx.state<AveragePoolGradState>();
  const int rank = s.attrs.spatial + 2;
  const Tensor& grad = ctx.input(1);
  ASSIGN_OR_RETURN(const Shape shape, AveragePoolInput(ctx.input(0), rank));
  if (grad.rank() != rank) {
    return InvalidArgument("out_backprop must be ", rank, "-dimensional");
  }
  for (const int i : {0, rank - 1}) {
    // Without gradients there is nothing to share out, without images nowhere: TensorFlow lets both
    // pass in two dimensions.
    const bool empty = rank == 4 && i == 0 && shape[0] * grad.dim(0) == 0;
    if (shape[i] == grad.dim(i) || empty) continue;
    return InvalidArgument("Expected ", i == 0 ? "first" : "last",
                           " dimension of tensor_in_shape and out_backprop to match, got ",
                           shape[i], " and ", grad.dim(i));
  }
  ASSIGN_OR_RETURN(nn::PoolProblem p, nn::MakePoolProblem(s.attrs, shape));
  const bool some = grad.num_elements() > 0 && (rank == 5 || shape.num_elements() > 0);
  for (int i = 0; i < s.attrs.spatial; ++i) {
    p.out[i] = grad.dim(1 + i);
    const int64_t stride = s.attrs.strides[static_cast<size_t>(i) + 1];
    if (some && p.out[i] - 1 > shape[1 + i] / stride) {
      return InvalidArgument("index * stride must be less than or equal to input size");
    }
  }
  const nn::PoolView v(p);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (grad.num_elements() == 0) std::memset(out->raw(), 0, out->bytes());
  if (out->num_elements() == 0 || grad.num_elements() == 0) return OkStatus();
  if (grad.dtype() == Dtype::kDouble) {
    ShareOut(v, p.batch, p.depth, grad.data<double>(), out->data<double>());
    return OkStatus();
  }
  Allocator* allocator = ctx.step().allocator;
  ASSIGN_OR_RETURN(const Tensor g, ToFloat(grad, allocator));
  ASSIGN_OR_RETURN(Tensor sum, ctx.Temp(Dtype::kFloat, shape));
  ShareOut(v, p.batch, p.depth, g.data<float>(), sum.data<float>());
  ASSIGN_OR_RETURN(*out, FromFloat(sum, grad.dtype(), allocator));
  return OkStatus();
}

constexpr Kernel kAveragePoolGradTable[] = {
    {"AvgPoolGrad", "T", kFloatTypes | kHalfTypes, "reference:avg_pool_grad", RunAveragePoolGrad,
     PrepareAveragePoolGrad},
    {"AvgPool3DGrad", "T", Types(Dtype::kFloat, Dtype::kBfloat16), "reference:avg_pool3d_grad",
     RunAveragePoolGrad, PrepareAveragePoolGrad},
};

}  // namespace

extern constinit const std::span<const Kernel> kAveragePoolGradKernels = kAveragePoolGradTable;

}  // namespace smelt
