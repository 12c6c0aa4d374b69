// Gradients of batch normalization and of local response normalization.
#include <cmath>
#include <limits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/nn/local_response.h"

namespace smelt {
namespace {

// ---- batch normalization ----

struct BatchNormGradState final : KernelState {
  float epsilon = 0;
  bool channels_last = true;
  bool training = true;
};

StatusOr<std::unique_ptr<KernelState>> PrepareBatchNormGrad(const Node& node) {
  auto s = std::make_unique<BatchNormGradState>();
  s->epsilon = node.Float("epsilon", 1e-4f);
  s->training = node.Bool("is_training", true);
  const std::string format = node.String("data_format", "NHWC");
  s->channels_last = format == "NHWC" || format == "NDHWC";
  if (!s->channels_last && format != "NCHW" && format != "NCDHW") {
    return InvalidArgument("Invalid data format");
  }
  return s;
}

Status CheckBatchNormGrad(const OpContext& ctx, const BatchNormGradState& s, int64_t* depth) {
  const Shape& dy = ctx.input(0).shape();
  const Shape& x = ctx.input(1).shape();
  for (const Shape* shape : {&dy, &x}) {
    if (shape->rank() == 4 || shape->rank() == 5) continue;
    return InvalidArgument("input must be 4 or 5-dimensional", shape->ToString());
  }
  static constexpr absl::string_view kNames[] = {"scale", "reserve_space_1", "reserve_space_2"};
  static constexpr absl::string_view kVectors[] = {"scale", "saved mean", "saved variance"};
  for (int i = 0; i < 3; ++i) {
    const Shape& v = ctx.input(2 + i).shape();
    if (v.rank() != 1) return InvalidArgument(kVectors[i], " must be 1-dimensional", v.ToString());
  }
  if (!(dy == x)) {
    return InvalidArgument("x and y_backprop must have same shape, but x has shape ", x.ToString(),
                           " and y_backprop has shape ", dy.ToString());
  }
  *depth = s.channels_last ? x.back() : x[1];
  for (int i = 0; i < 3; ++i) {
    const int64_t n = ctx.input(2 + i).num_elements();
    if (n == *depth) continue;
    return InvalidArgument(kNames[i], " must have the same number of elements as the channels of ",
                           "x, got ", n, " and ", *depth);
  }
  if (!s.training && !s.channels_last) {
    return InvalidArgument(
        "The implementation of FusedBatchNormGrad with is_training=False only support NHWC tensor "
        "format for now.");
  }
  return OkStatus();
}

// One channel of an image [outer, depth, inner]. While training, mean and variance depend on x too.
struct BatchNormChannel {
  int64_t outer, inner, step;  // `step`: between the channel's rows
  float mean, factor, scale;   // factor: 1 / sqrt(variance + epsilon)

  // Sums in double: of dy, and of dy * (x - mean).
  void Sums(const float* dy, const float* x, double* sum, double* product) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = o * step; i < o * step + inner; ++i) {
        *sum += dy[i];
        *product += static_cast<double>(dy[i]) * (x[i] - mean);
      }
    }
  }
  void Write(const float* dy, const float* x, float mean_dy, float slope, float* dx) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = o * step; i < o * step + inner; ++i) {
        dx[i] = scale * factor * (dy[i] - mean_dy - (x[i] - mean) * slope);
      }
    }
  }
};

Status RunBatchNormGrad(OpContext& ctx) {
  const auto& s = ctx.state<BatchNormGradState>();
  int64_t depth = 0;
  RETURN_IF_ERROR(CheckBatchNormGrad(ctx, s, &depth));
  const Tensor& x = ctx.input(1);
  const Shape shape = x.shape();
  const int axis = s.channels_last ? shape.rank() - 1 : 1;
  const int64_t outer = shape.Product(0, axis), inner = shape.Product(axis + 1, shape.rank());
  Allocator* allocator = ctx.step().allocator;
  ASSIGN_OR_RETURN(const Tensor dyf, ToFloat(ctx.input(0), allocator));
  ASSIGN_OR_RETURN(const Tensor xf, ToFloat(x, allocator));
  ASSIGN_OR_RETURN(Tensor dxf, ctx.Temp(Dtype::kFloat, shape));
  ASSIGN_OR_RETURN(Tensor * scale_grad, ctx.Allocate(1, Shape({depth})));
  ASSIGN_OR_RETURN(Tensor * offset_grad, ctx.Allocate(2, Shape({depth})));
  // The outputs reserved for a second gradient are empty.
  for (const int i : {3, 4}) RETURN_IF_ERROR(ctx.Allocate(i, Shape({0})).status());
  if (x.num_elements() == 0) {
    std::fill_n(scale_grad->data<float>(), depth, 0.0f);
    std::fill_n(offset_grad->data<float>(), depth, 0.0f);
    return ctx.Allocate(0, shape).status();
  }
  const float* scale = ctx.input(2).data<float>();
  const float* mean = ctx.input(3).data<float>();
  const float* variance = ctx.input(4).data<float>();
  const auto n = static_cast<double>(outer * inner);
  ParallelFor(depth, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, outer * inner)),
              [&](int64_t begin, int64_t end) {
                for (int64_t c = begin; c < end; ++c) {
                  const float factor = 1.0f / std::sqrt(variance[c] + s.epsilon);
                  const BatchNormChannel channel{outer,   inner,  depth * inner,
                                                 mean[c], factor, scale[c]};
                  const float* dy = dyf.data<float>() + c * inner;
                  const float* from = xf.data<float>() + c * inner;
                  double sum = 0, product = 0;
                  channel.Sums(dy, from, &sum, &product);
                  scale_grad->data<float>()[c] = static_cast<float>(product * factor);
                  offset_grad->data<float>()[c] = static_cast<float>(sum);
                  const double slope = product / n * factor * factor;
                  channel.Write(dy, from, s.training ? static_cast<float>(sum / n) : 0.0f,
                                s.training ? static_cast<float>(slope) : 0.0f,
                                dxf.data<float>() + c * inner);
                }
              });
  ASSIGN_OR_RETURN(Tensor dx, FromFloat(dxf, x.dtype(), allocator));
  ctx.set_output(0, std::move(dx));
  return OkStatus();
}

std::string DeclineBatchNormGrad(const Node& node) {
  const Dtype u = node.Type("U", Dtype::kFloat);
  if (u == Dtype::kFloat) return "";
  return absl::StrCat("statistics are ", DtypeName(u), ", not float");
}

// ---- local response normalization ----

// y = x * norm^-beta with norm = bias + alpha * (sum of squares around): every y depends on the x
// around it.
void LrnGradRow(const nn::LocalResponse& s, const float* g, const float* x, const float* y,
                int64_t depth, float* dx) {
  std::fill(dx, dx + depth, 0.0f);
  for (int64_t c = 0; c < depth; ++c) {
    const int64_t first = std::max<int64_t>(0, c - s.radius);
    const int64_t last = std::min(depth - 1, c + s.radius);
    float norm = 0;
    for (int64_t i = first; i <= last; ++i) norm += x[i] * x[i];
    norm = s.bias + s.alpha * norm;
    const float direct = std::pow(norm, -s.beta);
    for (int64_t i = first; i <= last; ++i) {
      const float d = -2 * s.alpha * s.beta * x[i] * y[c] / norm;
      dx[i] += (i == c ? d + direct : d) * g[c];
    }
  }
}

Status RunLrnGrad(OpContext& ctx) {
  const auto& s = ctx.state<nn::LocalResponse>();
  const Shape shape = ctx.input(0).shape();
  if (shape.rank() != 4 || ctx.input(1).rank() != 4) {
    return InvalidArgument("inputs must be 4-dimensional");
  }
  for (const int i : {1, 2}) {
    if (ctx.input(i).shape() == shape) continue;
    return InvalidArgument("input_grads, input_image, and out_image should have the same shape");
  }
  Allocator* allocator = ctx.step().allocator;
  ASSIGN_OR_RETURN(const Tensor g, ToFloat(ctx.input(0), allocator));
  ASSIGN_OR_RETURN(const Tensor x, ToFloat(ctx.input(1), allocator));
  ASSIGN_OR_RETURN(const Tensor y, ToFloat(ctx.input(2), allocator));
  ASSIGN_OR_RETURN(Tensor dx, ctx.Temp(Dtype::kFloat, shape));
  if (dx.num_elements() > 0) {
    const int64_t depth = shape[3];
    ParallelFor(dx.num_elements() / depth, std::max<int64_t>(1, 1024 / depth),
                [&](int64_t begin, int64_t end) {
                  for (int64_t at = begin * depth; at < end * depth; at += depth) {
                    LrnGradRow(s, g.data<float>() + at, x.data<float>() + at, y.data<float>() + at,
                               depth, dx.data<float>() + at);
                  }
                });
  }
  ASSIGN_OR_RETURN(Tensor out, FromFloat(dx, ctx.output_type(0), allocator));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

constexpr DtypeSet kBatchNormGradTypes = Types(Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16);

constexpr Kernel kNormalizationGradTable[] = {
    {"FusedBatchNormGrad", "T", Types(Dtype::kFloat), "nn:batch_norm_grad", RunBatchNormGrad,
     PrepareBatchNormGrad},
    {"FusedBatchNormGradV2", "T", kBatchNormGradTypes, "nn:batch_norm_grad", RunBatchNormGrad,
     PrepareBatchNormGrad, DeclineBatchNormGrad},
    {"LRNGrad", "T", Types(Dtype::kFloat, Dtype::kHalf), "reference:lrn_grad", RunLrnGrad,
     nn::PrepareLocalResponse},
};

}  // namespace

extern constinit const std::span<const Kernel> kNormalizationGradKernels = kNormalizationGradTable;

}  // namespace smelt
