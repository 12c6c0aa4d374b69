// Gradients of simulated quantization: where a value lies within the range the gradient passes to
// it, elsewhere to the end of the range that it is clamped to.
#include "smelt/kernels/common/fake_range.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

using quantized::FakeQuantState;

struct FakeEnds {
  float low, high;
  FakeEnds(const FakeQuantState& s, float min, float max) {
    const quantized::NudgedRange r = quantized::Nudge(s.quant_min, s.quant_max, min, max);
    low = r.lo;
    high = r.hi;
  }
};

Status RunFakeArgsGrad(OpContext& ctx) {
  const auto& s = ctx.state<FakeQuantState>();
  const Tensor g = ctx.input(0), x = ctx.input(1);
  if (!(g.shape() == x.shape())) {
    return InvalidArgument("Inputs to operation ", ctx.node().name(), " of type ", ctx.node().op(),
                           " must have the same size and shape.  Input 0: ", g.shape().ToString(),
                           " != input 1: ", x.shape().ToString());
  }
  const FakeEnds ends(s, s.min, s.max);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, g.shape()));
  for (int64_t i = 0; i < g.num_elements(); ++i) {
    const float v = x.data<float>()[i];
    // A product: an infinite gradient beyond the range is NaN.
    out->data<float>()[i] = g.data<float>()[i] * (v >= ends.low && v <= ends.high ? 1.0f : 0.0f);
  }
  return OkStatus();
}

// Gradients of a channel of `n` values `stride` apart.
struct EndGradients {
  float min = 0, max = 0;
};
EndGradients FakeChannelGrad(const FakeQuantState& s, float min, float max, const float* g,
                             const float* x, float* out, int64_t n, int64_t stride) {
  EndGradients sums;
  if (min == 0.0f && max == 0.0f) {
    for (int64_t i = 0; i < n; ++i) out[i * stride] = g[i * stride];
    return sums;
  }
  const FakeEnds ends(s, min, max);
  for (int64_t i = 0; i < n; ++i) {
    const float v = x[i * stride], grad = g[i * stride];
    const bool below = v<ends.low, above = v> ends.high;
    // Products, as TensorFlow's: an infinite gradient is NaN wherever it does not count.
    out[i * stride] = grad * (v >= ends.low && v <= ends.high ? 1.0f : 0.0f);
    sums.min += grad * (below ? 1.0f : 0.0f);
    sums.max += grad * (above ? 1.0f : 0.0f);
  }
  return sums;
}

template <bool kChannels>
Status RunFakeVarsGrad(OpContext& ctx) {
  const auto& s = ctx.state<FakeQuantState>();
  const Tensor g = ctx.input(0), x = ctx.input(1);
  if (!(g.shape() == x.shape())) {
    return InvalidArgument("gradient and input must be the same size");
  }
  if (kChannels && x.rank() < 1) {
    return InvalidArgument("`inputs` must be at least rank 1 but is rank 0");
  }
  const int64_t depth = kChannels ? x.shape().back() : 1;
  for (int i = 2; i <= 3; ++i) {
    const Tensor& t = ctx.input(i);
    const absl::string_view name = i == 2 ? "min" : "max";
    if (t.rank() != (kChannels ? 1 : 0)) {
      return InvalidArgument("`", name, "` must be rank ", kChannels ? 1 : 0, " but is rank ",
                             t.rank());
    }
    if (kChannels && t.dim(0) != depth) {
      return InvalidArgument(name, " has incorrect size, expected ", depth, " was ", t.dim(0));
    }
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, x.shape()));
  ASSIGN_OR_RETURN(Tensor * to_min, ctx.Allocate(1, ctx.input(2).shape()));
  ASSIGN_OR_RETURN(Tensor * to_max, ctx.Allocate(2, ctx.input(2).shape()));
  const int64_t rows = depth == 0 ? 0 : x.num_elements() / depth;
  for (int64_t c = 0; c < depth; ++c) {
    const EndGradients ends = FakeChannelGrad(
        s, ctx.input(2).data<float>()[c], ctx.input(3).data<float>()[c], g.data<float>() + c,
        x.data<float>() + c, out->data<float>() + c, rows, depth);
    to_min->data<float>()[c] = ends.min;
    to_max->data<float>()[c] = ends.max;
  }
  return OkStatus();
}

// QuantizeAndDequantizeV4Grad, whose gradients for min and max are 0.
template <typename T>
Status RoundTripGrad(OpContext& ctx) {
  const Tensor g = ctx.input(0), x = ctx.input(1), min = ctx.input(2), max = ctx.input(3);
  const int64_t axis = ctx.node().Int("axis", -1);
  if (axis < -1) return InvalidArgument("Axis must be at least -1. Found ", axis);
  if (axis >= x.rank()) {
    return InvalidArgument("Axis should be -1 or 0 or a positive value less than ", x.rank(),
                           "but given axis value was ", axis);
  }
  if (!(g.shape() == x.shape())) {
    return InvalidArgument("gradient and input must be the same size");
  }
  const int d = static_cast<int>(axis);
  const int64_t depth = axis < 0 ? 1 : x.dim(d);
  for (const Tensor* t : {&min, &max}) {
    if (t->rank() <= 1) continue;
    return InvalidArgument("Input ", t == &min ? "min" : "max",
                           " tensor must have dimension 0 or 1. Received ", t->rank(), ".");
  }
  for (const Tensor* t : {&min, &max}) {
    const absl::string_view name = t == &min ? "min" : "max";
    if (axis < 0 && t->rank() != 0) {
      return InvalidArgument("input_", name, " must be a scalar if axis is unspecified");
    }
    if (axis >= 0 && t->rank() != 1) {
      return InvalidArgument("Shape must be rank 1 for input_", name,
                             "_tensor when the axis is specified");
    }
    if (axis >= 0 && t->num_elements() != depth) {
      return InvalidArgument(name, " has incorrect size, expected ", depth, " was ",
                             t->num_elements());
    }
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, x.shape()));
  for (int i = 1; i <= 2; ++i) {
    ASSIGN_OR_RETURN(ctx.output(i), Tensor::Zeros(x.dtype(), min.shape(), ctx.step().allocator));
  }
  const int64_t inner = axis < 0 ? x.num_elements() : x.shape().Product(d + 1, x.rank());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const int64_t c = axis < 0 ? 0 : i / inner % depth;
    const T v = x.data<T>()[i];
    const bool inside = v >= min.data<T>()[c] && v <= max.data<T>()[c];
    out->data<T>()[i] = g.data<T>()[i] * static_cast<T>(inside);  // NaN where g is infinite
  }
  return OkStatus();
}

Status RunRoundTripGrad(OpContext& ctx) {
  return ctx.output_type(0) == Dtype::kFloat ? RoundTripGrad<float>(ctx)
                                             : RoundTripGrad<double>(ctx);
}

constexpr Kernel kQuantizedGradTable[] = {
    {"FakeQuantWithMinMaxArgsGradient", "", kAnyType, "quantized:fake_gradient", RunFakeArgsGrad,
     quantized::ReadFakeQuant},
    {"FakeQuantWithMinMaxVarsGradient", "", kAnyType, "quantized:fake_gradient",
     RunFakeVarsGrad<false>, quantized::ReadFakeQuant},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", "", kAnyType, "quantized:fake_gradient",
     RunFakeVarsGrad<true>, quantized::ReadFakeQuant},
    {"QuantizeAndDequantizeV4Grad", "T", kFloatTypes, "quantized:round_trip_gradient",
     RunRoundTripGrad},
};

}  // namespace

extern constinit const std::span<const Kernel> kQuantizedGradKernels = kQuantizedGradTable;

}  // namespace smelt
