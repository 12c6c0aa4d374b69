// QUANTIZE, DEQUANTIZE, and one quantization as another.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/isa/int8.h"
#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {
namespace {

struct ScaleState final : KernelState {
  Affine in, out;
  Range range;
  Factor factor;
  FloatSteps float_steps;
  float inverse = 0;      // of the output's scale
  int32_t in_256ths = 0;  // the factor, where XNNPACK has no more bits of it; else 0

  bool QuantizesInt8() const { return out.scales.size() == 1 && std::abs(out.zero()) <= 65536; }
  // Products of so few bits are the same in float.
  bool DequantizesInt8() const { return in.scales.size() == 1 && std::abs(in.zero()) <= 128; }
  void QuantizeInt8(const float* x, int8_t* y, int64_t n) const;
  void DequantizeInt8(const int8_t* x, float* y, int64_t n) const;
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
};

void ScaleState::QuantizeInt8(const float* x, int8_t* y, int64_t n) const {
  ParallelFor(n, 1 << 14, [&](int64_t begin, int64_t end) {
    IsaExactInt8().quantize(x + begin, y + begin, end - begin,
                            {&inverse, out.zero(), range.low, range.high});
  });
}

void ScaleState::DequantizeInt8(const int8_t* x, float* y, int64_t n) const {
  ParallelFor(n, 1 << 14, [&](int64_t begin, int64_t end) {
    IsaInt8().dequantize(x + begin, y + begin, end - begin, in.scale(),
                         static_cast<float>(in.zero()));
  });
}

StatusOr<std::unique_ptr<BoundKernel>> ScaleState::Bind(const BindContext& context) {
  const Dtype from = context.inputs[0].dtype, to = context.outputs[0].dtype;
  const int64_t n = context.inputs[0].shape.num_elements();
  if (from == Dtype::kFloat && to == Dtype::kInt8 && QuantizesInt8()) {
    return BindCall([this, n](const void* const* x, void* const* y, void*) {
      QuantizeInt8(static_cast<const float*>(x[0]), static_cast<int8_t*>(y[0]), n);
    });
  }
  if (from == Dtype::kInt8 && to == Dtype::kFloat && DequantizesInt8()) {
    return BindCall([this, n](const void* const* x, void* const* y, void*) {
      DequantizeInt8(static_cast<const int8_t*>(x[0]), static_cast<float*>(y[0]), n);
    });
  }
  return DeclineToBind("it is not between float and int8 of one scale");
}

StatusOr<std::unique_ptr<KernelState>> PrepareScale(const Node& node) {
  auto s = std::make_unique<ScaleState>();
  s->in = InputAffine(node, 0);
  s->out = OutputAffine(node);
  s->range = RangeOf(node.output_types[0]);
  s->factor = FactorOf(static_cast<double>(s->in.scale()) / static_cast<double>(s->out.scale()));
  s->inverse = 1.0f / s->out.scale();
  s->float_steps = FloatSteps(s->range, s->out.zero());
  const float ratio = s->in.scale() / s->out.scale();
  const Dtype type = node.output_types[0];
  if (node.input_types[0] == type && (type == Dtype::kInt8 || type == Dtype::kUint8) &&
      ratio >= 0x1p-8f && ratio <= 0x1p7f) {
    s->in_256ths = static_cast<int32_t>(std::lrint(256 * ratio));
  }
  return s;
}

// Which scale belongs to an element. INVALID_ARGUMENT where there are not as many as the dimension
// has indices.
struct ScaleIndex {
  int64_t inner = 1, count = 1;
  static StatusOr<ScaleIndex> Of(const Affine& a, const Shape& shape) {
    ScaleIndex index;
    if (a.scales.size() <= 1) return index;
    if (a.dim < 0 || a.dim >= shape.rank() ||
        shape[a.dim] != static_cast<int64_t>(a.scales.size())) {
      return InvalidArgument("a tensor of shape ", shape.ToString(), " has ", a.scales.size(),
                             " scales for dimension ", a.dim);
    }
    index.count = shape[a.dim];
    index.inner = shape.Product(a.dim + 1, shape.rank());
    return index;
  }
  size_t operator()(int64_t i) const {
    return count == 1 ? 0 : static_cast<size_t>(i / inner % count);
  }
};

// The steps of a number that fills no vector: divided in double, halves away from zero.
int32_t DividedSteps(const ScaleState& s, float x) {
  const double steps = std::round(static_cast<double>(x) / static_cast<double>(s.out.scale()));
  // Beyond int32, and not a number, as processors convert.
  if (!(std::abs(steps) < 2147483648.0)) return s.range.low;
  return s.range.Clamp(static_cast<int32_t>(steps), s.out.zero());
}

Status RunQuantize(OpContext& ctx) {
  const auto& s = ctx.state<ScaleState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(const ScaleIndex index, ScaleIndex::Of(s.out, in.shape()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  const float* x = in.data<float>();
  const int64_t whole = in.num_elements() & ~int64_t{7};
  if (out->dtype() == Dtype::kInt8 && s.QuantizesInt8()) {
    s.QuantizeInt8(x, out->data<int8_t>(), in.num_elements());
    return OkStatus();
  }
  VisitNarrow(out->dtype(), [&]<typename T>() {
    T* y = out->data<T>();
    ParallelFor(in.num_elements(), 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const size_t c = index(i);
        // One scale is a factor, in LiteRT's kernels and XNNPACK's; of int16, where that fills
        // vectors of 8.
        if (index.count == 1 && (sizeof(T) == 1 || i < whole)) {
          y[i] = static_cast<T>(s.float_steps.Of(x[i] * s.inverse));
          continue;
        }
        if (index.count == 1) {
          y[i] = static_cast<T>(DividedSteps(s, x[i]));
          continue;
        }
        y[i] = static_cast<T>(
            Quantized(x[i], s.out.scales[c], static_cast<int32_t>(s.out.zeros[c]), s.range));
      }
    });
  });
  return OkStatus();
}

template <typename To, typename From>
void Requantize(const ScaleState& s, const Tensor& in, Tensor* out) {
  const From* x = in.data<From>();
  To* y = out->data<To>();
  ParallelFor(in.num_elements(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int32_t value = WrappedSum(x[i], WrappedProduct(s.in.zero(), -1));
      if (s.in_256ths != 0) {
        y[i] = static_cast<To>(s.range.Clamp((value * s.in_256ths + 128) >> 8, s.out.zero()));
        continue;
      }
      // LiteRT's own kernel rounds what stays of 8 bits in vectors, halves up.
      const bool up = sizeof(From) == 1 && sizeof(To) == 1;
      y[i] = static_cast<To>(
          s.range.Clamp(up ? TimesUp(value, s.factor) : Times(value, s.factor), s.out.zero()));
    }
  });
}

Status RunRequantize(OpContext& ctx) {
  const auto& s = ctx.state<ScaleState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  const auto from = [&]<typename From>() {
    if (out->dtype() == Dtype::kInt32) return Requantize<int32_t, From>(s, in, out);
    VisitNarrow(out->dtype(), [&]<typename To>() { Requantize<To, From>(s, in, out); });
  };
  if (in.dtype() == Dtype::kInt32) {
    from.template operator()<int32_t>();
  } else {
    VisitNarrow(in.dtype(), from);
  }
  return OkStatus();
}

Status RunDequantize(OpContext& ctx) {
  const auto& s = ctx.state<ScaleState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(const ScaleIndex index, ScaleIndex::Of(s.in, in.shape()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  float* y = out->data<float>();
  if (in.dtype() == Dtype::kInt8 && s.DequantizesInt8()) {
    s.DequantizeInt8(in.data<int8_t>(), y, in.num_elements());
    return OkStatus();
  }
  const auto from = [&]<typename T>() {
    const auto* x = static_cast<const T*>(in.raw());
    ParallelFor(in.num_elements(), 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const size_t c = index(i);
        const int64_t zero = s.in.zeros.empty() ? 0 : s.in.zeros[c];
        y[i] = static_cast<float>(static_cast<double>(s.in.scales[c]) *
                                  static_cast<double>(int64_t{x[i]} - zero));
      }
    });
  };
  if (in.dtype() == Dtype::kInt32) {
    from.template operator()<int32_t>();
  } else if (in.dtype() == Dtype::kInt4) {
    from.template operator()<int8_t>();
  } else {
    VisitNarrow(in.dtype(), from);
  }
  return OkStatus();
}

bool IsQuantizedType(Dtype type) {
  return type == Dtype::kInt32 || VisitNarrow(type, []<typename T>() {});
}
bool HasScales(const Affine& a) {
  return !a.scales.empty() && a.zeros.size() == a.scales.size() &&
         std::ranges::all_of(a.scales, IsScale);
}

std::string DeclineQuantize(const Node& node) {
  if (node.num_inputs() != 1 || node.input_types[0] != Dtype::kFloat)
    return "its input is not float";
  if (!VisitNarrow(node.output_types[0], []<typename T>() {})) {
    return absl::StrCat("its output is ", DtypeName(node.output_types[0]));
  }
  return HasScales(OutputAffine(node)) ? "" : "its output has no scales";
}
std::string DeclineRequantize(const Node& node) {
  if (node.num_inputs() != 1 || !IsQuantizedType(node.input_types[0]) ||
      !IsQuantizedType(node.output_types[0])) {
    return "it is not between integers";
  }
  const Affine in = InputAffine(node, 0), out = OutputAffine(node);
  return HasScales(in) && HasScales(out) && in.scales.size() == 1 && out.scales.size() == 1
             ? ""
             : "it is not between two scales";
}
std::string DeclineDequantize(const Node& node) {
  if (node.num_inputs() != 1 || node.output_types[0] != Dtype::kFloat ||
      (!IsQuantizedType(node.input_types[0]) && node.input_types[0] != Dtype::kInt4)) {
    return "it is not from integers to float";
  }
  return HasScales(InputAffine(node, 0)) ? "" : "its input has no scales";
}

constexpr Kernel kLiteQuantizeTable[] = {
    {"tfl.quantize", "", kAnyType, "lite:quantize", RunQuantize, PrepareScale, DeclineQuantize},
    {"tfl.quantize", "", kAnyType, "lite:requantize", RunRequantize, PrepareScale,
     DeclineRequantize},
    {"tfl.dequantize", "", kAnyType, "lite:dequantize", RunDequantize, PrepareScale,
     DeclineDequantize},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteQuantizeKernels = lite::kLiteQuantizeTable;
}  // namespace smelt
