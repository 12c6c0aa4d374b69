// Simulated quantization: FakeQuant* and QuantizeAndDequantize*. Formulas as TensorFlow's CPU
// kernels round them, operation by operation.
#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/fake_range.h"
#include "smelt/kernels/elementwise/elementwise.h"

namespace smelt {
namespace {

constexpr int64_t kQuantGrain = 1 << 14;

using quantized::FakeQuantState;
using quantized::NudgedRange;

template <FakeQuantState::BindFunction kBind>
constexpr auto PrepareFakeQuant = PrepareBoundBy<FakeQuantState, quantized::ReadFakeQuant, kBind>;

NudgedRange Nudge(const FakeQuantState& s, float min, float max) {
  return quantized::Nudge(s.quant_min, s.quant_max, min, max);
}

// y may be x.
void FakeQuantArgs(const NudgedRange& r, const float* x, float* y, int64_t n) {
  ParallelFor(n, kQuantGrain, [&](int64_t begin, int64_t end) {
    Isa().fake_quant(x + begin, y + begin, end - begin, r.lo, r.hi, r.scale, r.inv_scale, r.zero);
  });
}

Status RunFakeQuantArgs(OpContext& ctx) {
  const auto& s = ctx.state<FakeQuantState>();
  const Tensor& in = ctx.input(0);
  const float* x = in.data<float>();
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, in.shape()));
  FakeQuantArgs(Nudge(s, s.min, s.max), x, out->data<float>(), in.num_elements());
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> BindFakeQuantArgs(const FakeQuantState& s,
                                                         const BindContext& context) {
  const Shape& in = context.inputs[0].shape;
  if (!Fits(context, 1, in)) return nullptr;
  const auto run = [r = Nudge(s, s.min, s.max), n = in.num_elements()](
                       const void* const* inputs, void* const* outputs, void* /*scratch*/) {
    FakeQuantArgs(r, static_cast<const float*>(inputs[0]), static_cast<float*>(outputs[0]), n);
  };
  return BindCall(run, {0});
}

// y may be x.
void FakeQuantVars(const FakeQuantState& s, float min, float max, const float* x, float* y,
                   int64_t n) {
  if (min == 0.0f && max == 0.0f) {
    std::fill(y, y + n, 0.0f);
    return;
  }
  const NudgedRange r = Nudge(s, min, max);
  ParallelFor(n, kQuantGrain, [&](int64_t begin, int64_t end) {
    Isa().fake_quant(x + begin, y + begin, end - begin, r.lo, r.hi, r.scale, 0.0f, r.zero);
  });
}

Status RunFakeQuantVars(OpContext& ctx) {
  const auto& s = ctx.state<FakeQuantState>();
  const Tensor& in = ctx.input(0);
  for (int i = 1; i <= 2; ++i) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument("`", i == 1 ? "min" : "max", "` must be rank 0 but is rank ",
                             ctx.input(i).rank());
    }
  }
  const float min = ctx.input(1).scalar<float>();
  const float max = ctx.input(2).scalar<float>();
  const float* x = in.data<float>();
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, in.shape()));
  FakeQuantVars(s, min, max, x, out->data<float>(), in.num_elements());
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> BindFakeQuantVars(const FakeQuantState& s,
                                                         const BindContext& context) {
  const Shape& in = context.inputs[0].shape;
  if (!Fits(context, 3, in) || context.inputs[1].shape.rank() != 0 ||
      context.inputs[2].shape.rank() != 0) {
    return nullptr;  // the run says why
  }
  const auto run = [&s, n = in.num_elements()](const void* const* inputs, void* const* outputs,
                                               void* /*scratch*/) {
    FakeQuantVars(s, *static_cast<const float*>(inputs[1]), *static_cast<const float*>(inputs[2]),
                  static_cast<const float*>(inputs[0]), static_cast<float*>(outputs[0]), n);
  };
  return BindCall(run, {0});
}

// Values with channels last, each with a range of its own. `ranges` is memory for as many.
struct FakeQuantChannels {
  const FakeQuantState& state;
  int64_t rows, depth;

  void Run(const float* x, const float* min, const float* max, float* y,
           NudgedRange* ranges) const {
    for (int64_t c = 0; c < depth; ++c) ranges[c] = Nudge(state, min[c], max[c]);
    ParallelFor(rows, std::max<int64_t>(1, kQuantGrain / depth), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t c = 0; c < depth; ++c) {
          const NudgedRange& r = ranges[c];
          const int64_t at = i * depth + c;
          if (min[c] == 0.0f && max[c] == 0.0f) {
            y[at] = 0.0f;
            continue;
          }
          float v = x[at];
          v = v > r.hi ? r.hi : v;
          v = v < r.lo ? r.lo : v;
          y[at] = std::floor((v - r.lo) * r.inv_scale - r.zero + 0.5f) * r.scale;
        }
      }
    });
  }
};

Status RunFakeQuantChannels(OpContext& ctx) {
  const auto& s = ctx.state<FakeQuantState>();
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("`inputs` must be at least rank 1 but is rank 0");
  const int64_t depth = in.shape().back();
  for (int i = 1; i <= 2; ++i) {
    const absl::string_view name = i == 1 ? "min" : "max";
    const Tensor& t = ctx.input(i);
    if (t.rank() != 1) {
      return InvalidArgument("`", name, "` must be rank 1 but is rank ", t.rank());
    }
    if (t.dim(0) != depth) {
      return InvalidArgument(name, " has incorrect size, expected ", depth, " was ", t.dim(0));
    }
  }
  const float* x = in.data<float>();
  const float* min = ctx.input(1).data<float>();
  const float* max = ctx.input(2).data<float>();
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, in.shape()));
  if (in.num_elements() == 0) return OkStatus();
  std::vector<NudgedRange> ranges(static_cast<size_t>(depth));
  FakeQuantChannels{s, in.num_elements() / depth, depth}.Run(x, min, max, out->data<float>(),
                                                             ranges.data());
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> BindFakeQuantChannels(const FakeQuantState& s,
                                                             const BindContext& context) {
  const Shape& in = context.inputs[0].shape;
  if (!Fits(context, 3, in) || in.num_elements() == 0 || in.rank() < 1) return nullptr;
  const Shape channels({in.back()});
  if (!(context.inputs[1].shape == channels) || !(context.inputs[2].shape == channels)) {
    return nullptr;  // the run says why
  }
  const auto run = [job = FakeQuantChannels{s, in.num_elements() / in.back(), in.back()}](
                       const void* const* inputs, void* const* outputs, void* scratch) {
    job.Run(static_cast<const float*>(inputs[0]), static_cast<const float*>(inputs[1]),
            static_cast<const float*>(inputs[2]), static_cast<float*>(outputs[0]),
            static_cast<NudgedRange*>(scratch));
  };
  return BindCall(run, {0}, static_cast<size_t>(in.back()) * sizeof(NudgedRange));
}

struct RoundTripState final : KernelState {
  bool is_signed = true;
  bool range_given = false;
  bool narrow_range = false;
  bool half_up = false;
  int64_t num_bits = 8;  // V2, V4
  int64_t axis = -1;
  float input_min = 0, input_max = 0;  // V1
};

Status CheckBits(int64_t bits, bool is_signed, absl::string_view name) {
  if (bits > 0 && bits < (is_signed ? 62 : 63)) return OkStatus();
  return InvalidArgument("num_bits is out of range: ", bits, " with ", name, " ",
                         is_signed ? 1 : 0);
}

StatusOr<std::unique_ptr<KernelState>> PrepareRoundTrip(const Node& node) {
  auto s = std::make_unique<RoundTripState>();
  s->is_signed = node.Bool("signed_input", true);
  s->range_given = node.Bool("range_given", node.Is("QuantizeAndDequantizeV3"));
  s->narrow_range = node.Bool("narrow_range", false);
  s->half_up = node.String("round_mode", "HALF_TO_EVEN") == "HALF_UP";
  s->num_bits = node.Int("num_bits", 8);
  s->axis = node.Int("axis", -1);
  s->input_min = node.Float("input_min");
  s->input_max = node.Float("input_max");
  if (s->axis < -1) return InvalidArgument("Axis must be at least -1. Found ", s->axis);
  if (!node.Is("QuantizeAndDequantizeV3")) {
    RETURN_IF_ERROR(CheckBits(s->num_bits, s->is_signed, "signed_input_"));
  }
  return s;
}

template <typename T>
struct RoundTripRange {
  T min, max, scale, inverse_scale;
};
template <typename T>
RoundTripRange<T> RoundTripRangeOf(const RoundTripState& s, int64_t bits, T min, T max) {
  const int64_t half = int64_t{1} << (bits - 1);
  const int64_t least = s.is_signed ? (s.narrow_range ? 1 - half : -half) : 0;
  const int64_t most = s.is_signed ? half - 1 : (half - 1) * 2 + 1;
  const T lo = static_cast<T>(least), hi = static_cast<T>(most);
  constexpr T kMax = std::numeric_limits<T>::max();
  const T from_min = lo * min > 0 ? lo / min : kMax;
  const T from_max = hi * max > 0 ? hi / max : kMax;
  RoundTripRange<T> r = {min, max, T(0), T(0)};
  if (from_min < from_max) {
    r.scale = from_min;
    r.inverse_scale = min / lo;
    r.max = hi * r.inverse_scale;
  } else {
    r.scale = from_max;
    r.inverse_scale = max / hi;
    r.min = lo * r.inverse_scale;
  }
  return r;
}

// One channel: `count` runs of `length` elements, which begin `stride` elements apart.
template <typename T>
Status RoundTripChannel(const RoundTripState& s, int64_t bits, T min, T max, const T* x, T* y,
                        int64_t count, int64_t length, int64_t stride) {
  if (!s.range_given) {
    if (count == 0 || length == 0) return OkStatus();
    min = max = x[0];
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < length; ++j) {
        const T v = x[i * stride + j];
        min = v < min ? v : min;
        max = v > max ? v : max;
      }
    }
  }
  const RoundTripRange<T> r = RoundTripRangeOf(s, bits, min, max);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < length; ++j) {
      T v = x[i * stride + j];
      if (s.range_given) {
        v = v > r.max ? r.max : v;
        v = v < r.min ? r.min : v;
      }
      v *= r.scale;
      v = s.half_up ? std::floor(v + T(0.5)) : std::nearbyint(v);
      y[i * stride + j] = v * r.inverse_scale;
    }
  }
  return OkStatus();
}

template <typename T>
Status RoundTrip(OpContext& ctx, const Tensor& tmin, const Tensor& tmax, int64_t bits) {
  const auto& s = ctx.state<RoundTripState>();
  const Tensor& in = ctx.input(0);
  if (s.axis >= in.rank()) {
    return InvalidArgument("Axis requested is larger than input dimensions. Axis: ", s.axis,
                           " Input Dimensions: ", in.rank());
  }
  const bool v3 = ctx.node().Is("QuantizeAndDequantizeV3");
  const int64_t depth = s.axis == -1 ? 1 : in.dim(static_cast<int>(s.axis));
  if (s.range_given) {
    for (const Tensor* t : {&tmin, &tmax}) {
      // V3 takes a vector of one value as well.
      const bool one = t->rank() == 0 || (v3 && t->num_elements() == 1);
      const bool fits = s.axis == -1 ? one : t->rank() == 1 && t->dim(0) == depth;
      if (fits) continue;
      const absl::string_view name = t == &tmin ? "input_min" : "input_max";
      if (s.axis == -1) {
        return InvalidArgument(name, " must be a scalar.");
      }
      if (t->rank() == 0) {
        return InvalidArgument("Shape must be rank 1 for ", name,
                               "_tensor when the axis is specified");
      }
      return InvalidArgument(name, " has incorrect size, was ", t->num_elements(), " expected ",
                             depth);
    }
    // Ranges of channels are taken as they come.
    if (s.axis == -1 && !(*tmin.data<T>() <= *tmax.data<T>())) {
      return InvalidArgument("Invalid range: input_min ", *tmin.data<T>(), " > input_max ",
                             *tmax.data<T>());
    }
  }
  const T* x = in.data<T>();
  const int axis = static_cast<int>(s.axis);
  const int64_t outer = s.axis == -1 ? 1 : in.shape().Product(0, axis);
  const int64_t inner = s.axis == -1 ? in.num_elements() : in.shape().Product(axis + 1, in.rank());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, in.shape()));
  T* y = out->data<T>();
  for (int64_t c = 0; c < depth; ++c) {
    RETURN_IF_ERROR(RoundTripChannel<T>(s, bits, s.range_given ? tmin.data<T>()[c] : T(0),
                                        s.range_given ? tmax.data<T>()[c] : T(0), x + c * inner,
                                        y + c * inner, outer, inner, depth * inner));
  }
  return OkStatus();
}

Status RunRoundTrip(OpContext& ctx) {
  const auto& s = ctx.state<RoundTripState>();
  int64_t bits = s.num_bits;
  if (ctx.node().Is("QuantizeAndDequantizeV3")) {
    const Tensor& t = ctx.input(3);
    if (t.rank() != 0) {
      return InvalidArgument(
          "Invalid shape. The `num_bits` tensor should be a scalar. Got dimensions: ", t.rank());
    }
    bits = t.scalar<int32_t>();
    RETURN_IF_ERROR(CheckBits(bits, s.is_signed, "`signed_input_`"));
  }
  const Tensor &min = ctx.input(1), &max = ctx.input(2);
  return ctx.output_type(0) == Dtype::kFloat ? RoundTrip<float>(ctx, min, max, bits)
                                             : RoundTrip<double>(ctx, min, max, bits);
}

// V1 has the range in attributes, not in inputs.
Status RunRoundTripOfAttrs(OpContext& ctx) {
  const auto& s = ctx.state<RoundTripState>();
  if (s.range_given && !(s.input_min <= s.input_max)) {
    return InvalidArgument("Invalid range: input_min ", s.input_min, " > input_max ", s.input_max);
  }
  if (ctx.output_type(0) == Dtype::kFloat) {
    return RoundTrip<float>(ctx, Tensor::Scalar(s.input_min), Tensor::Scalar(s.input_max),
                            s.num_bits);
  }
  return RoundTrip<double>(ctx, Tensor::Scalar(static_cast<double>(s.input_min)),
                           Tensor::Scalar(static_cast<double>(s.input_max)), s.num_bits);
}

constexpr Kernel kFakeQuantTable[] = {
    {"FakeQuantWithMinMaxArgs", "", kAnyType, "isa:fake_quant", RunFakeQuantArgs,
     PrepareFakeQuant<BindFakeQuantArgs>},
    {"FakeQuantWithMinMaxVars", "", kAnyType, "isa:fake_quant", RunFakeQuantVars,
     PrepareFakeQuant<BindFakeQuantVars>},
    {"FakeQuantWithMinMaxVarsPerChannel", "", kAnyType, "reference:fake_quant_channels",
     RunFakeQuantChannels, PrepareFakeQuant<BindFakeQuantChannels>},
    {"QuantizeAndDequantize", "T", kFloatTypes, "reference:quantize_dequantize",
     RunRoundTripOfAttrs, PrepareRoundTrip},
    {"QuantizeAndDequantizeV2", "T", kFloatTypes, "reference:quantize_dequantize", RunRoundTrip,
     PrepareRoundTrip},
};

}  // namespace

extern constinit const std::span<const Kernel> kFakeQuantKernels = kFakeQuantTable;

}  // namespace smelt
