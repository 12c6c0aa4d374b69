// ABS and roots of quantized numbers, and functions of int16 by lines between 513 samples.
#include <array>

#include "smelt/base/parallel.h"
#include "smelt/kernels/lite/fixed_functions.h"
#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {
namespace {

struct FunctionState final : KernelState {
  Affine in, out;
  Factor factor;
  Range range;
  std::vector<int16_t> samples;  // of functions of int16
};

StatusOr<std::unique_ptr<FunctionState>> MakeFunction(const Node& node) {
  auto s = std::make_unique<FunctionState>();
  s->in = InputAffine(node, 0);
  s->out = OutputAffine(node);
  s->range = RangeOf(node.output_types[0]);
  return s;
}

// y = fn(x) of T, which may fail.
template <typename T, typename F>
Status ForEach(OpContext& ctx, F fn) {
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  const T* x = in.data<T>();
  T* y = out->data<T>();
  ParallelFor(in.num_elements(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(fn(int32_t{x[i]}));
  });
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> PrepareAbs(const Node& node) {
  ASSIGN_OR_RETURN(auto s, MakeFunction(node));
  s->factor = FactorOf(static_cast<double>(s->in.scale() / s->out.scale()));
  return s;
}

Status RunAbs(OpContext& ctx) {
  const auto& s = ctx.state<FunctionState>();
  const bool same = s.in.scale() == s.out.scale();
  Status status;
  VisitNarrow(ctx.output_type(0), [&]<typename T>() {
    status = ForEach<T>(ctx, [&](int32_t x) {
      const int32_t size = std::abs(x - s.in.zero());
      return s.range.Clamp(same ? size : Times(size, s.factor), s.out.zero());
    });
  });
  return status;
}

StatusOr<std::unique_ptr<KernelState>> PrepareRoot(const Node& node) {
  ASSIGN_OR_RETURN(auto s, MakeFunction(node));
  s->factor = FactorOf(1.0 / static_cast<double>(std::sqrt(s->in.scale()) * s->out.scale()));
  return s;
}

// Is a number below 0?
template <typename T>
bool HasNegative(const Tensor& in, int32_t zero) {
  return std::ranges::any_of(in.flat<T>(), [&](T x) { return int32_t{x} < zero; });
}

// Of real numbers, cut off.
Status RunSqrt(OpContext& ctx) {
  const auto& s = ctx.state<FunctionState>();
  Status status;
  VisitNarrow(ctx.output_type(0), [&]<typename T>() {
    if (HasNegative<T>(ctx.input(0), s.in.zero())) {
      status = InvalidArgument("Sqrt is only defined for non-negative values");
      return;
    }
    status = ForEach<T>(ctx, [&](int32_t x) {
      const float root = std::sqrt(s.in.scale() * static_cast<float>(x - s.in.zero()));
      return s.range.Clamp(Truncated(root / s.out.scale()), s.out.zero());
    });
  });
  return status;
}

Status NoInverseRoot() { return InvalidArgument("Rsqrt is only defined for positive values"); }

// Of int8, on fixed point.
Status RunInverseRoot(OpContext& ctx) {
  const auto& s = ctx.state<FunctionState>();
  constexpr int kBits = 20;
  if (HasNegative<int8_t>(ctx.input(0), s.in.zero())) return NoInverseRoot();
  return ForEach<int8_t>(ctx, [&](int32_t x) {
    const int32_t value = x - s.in.zero();
    if (value == 0) return s.range.high;
    Factor root = InverseRoot(value), scaled = s.factor;
    root.shift += kBits;
    scaled.shift -= kBits;
    return s.range.Clamp(Times(Times(1, root), scaled), s.out.zero());
  });
}

// ---- int16

// Within int16; 0 for what is not a number: infinities less infinities.
int16_t Sample(float x) {
  return std::isnan(x) ? int16_t{0} : static_cast<int16_t>(std::clamp(x, -32768.0f, 32767.0f));
}

// fn of 513 numbers of the input's range: half of what a line misses in its middle is taken off its
// begin.
template <float (*kFn)(const Node& node, const FunctionState& s, float x)>
StatusOr<std::unique_ptr<KernelState>> PrepareSamples(const Node& node) {
  ASSIGN_OR_RETURN(auto s, MakeFunction(node));
  const float in = s->in.scale(), out = s->out.scale();
  const float first = in * static_cast<float>(-32768 - s->in.zero());
  const float last = in * static_cast<float>(32767 - s->in.zero());
  const float lowest = out * static_cast<float>(-32768 - s->out.zero());
  const float highest = out * static_cast<float>(32767 - s->out.zero());
  const float step = (last - first) / 512, inverse = 65536.0f / (highest - lowest);
  const auto fn = [&](float x) { return kFn(node, *s, x); };
  for (int i = 0; i < 512; ++i) {
    const float from = first + static_cast<float>(i) * step;
    const float here = std::round(fn(from) * inverse);
    const float next = fn(first + static_cast<float>(i + 1) * step) * inverse;
    const float middle = std::round(fn(from + step / 2) * inverse);
    const float missed = std::round((next + here) / 2) - middle;
    s->samples.push_back(Sample(here - std::round(missed / 2)));
  }
  s->samples.push_back(Sample(std::round(fn(last) * inverse)));
  return s;
}

Status RunSamples(OpContext& ctx) {
  const auto& s = ctx.state<FunctionState>();
  return ForEach<int16_t>(ctx, [&](int32_t x) {
    const auto i = static_cast<size_t>(256 + (x >> 7));
    // The slope has 16 bits.
    const auto slope = static_cast<int16_t>(s.samples[i + 1] - s.samples[i]);
    return s.samples[i] + ((slope * (x & 127) + 64) >> 7);
  });
}

Status RunInverseRootSamples(OpContext& ctx) {
  const auto& s = ctx.state<FunctionState>();
  return HasNegative<int16_t>(ctx.input(0), s.in.zero()) ? NoInverseRoot() : RunSamples(ctx);
}

float ExpOf(const Node&, const FunctionState&, float x) { return std::exp(x); }
// The least result stands for those of what has none.
float LogOf(const Node&, const FunctionState& s, float x) {
  return x > 0 ? std::log(x) : static_cast<float>(-32768 - s.out.zero()) * s.out.scale();
}
float InverseRootOf(const Node&, const FunctionState& s, float x) {
  return x > 0 ? 1.0f / std::sqrt(x) : 32767.0f * s.out.scale();
}
float GeluOf(const Node& node, const FunctionState&, float x) {
  if (!node.Bool("approximate")) return 0.5f * x * std::erfc(x * -0.70710678118654752440f);
  return 0.5f * x * (1 + std::tanh(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

std::string DeclineFunction(const Node& node) { return DeclineUnlessNarrow(node, 1); }
template <Dtype kType>
std::string DeclineUnless(const Node& node) {
  std::string why = DeclineUnlessNarrow(node, 1);
  if (why.empty() && node.output_types[0] != kType) {
    why = absl::StrCat("its output is ", DtypeName(node.output_types[0]));
  }
  return why;
}

constexpr Kernel kLiteFunctionTable[] = {
    {"tfl.abs", "", kAnyType, "lite:abs", RunAbs, PrepareAbs, DeclineFunction},
    {"tfl.sqrt", "", kAnyType, "lite:sqrt", RunSqrt, PrepareRoot, DeclineFunction},
    {"tfl.rsqrt", "", kAnyType, "lite:rsqrt", RunInverseRoot, PrepareRoot,
     DeclineUnless<Dtype::kInt8>},
    {"tfl.rsqrt", "", kAnyType, "lite:lines", RunInverseRootSamples, PrepareSamples<InverseRootOf>,
     DeclineUnless<Dtype::kInt16>},
    {"tfl.exp", "", kAnyType, "lite:lines", RunSamples, PrepareSamples<ExpOf>,
     DeclineUnless<Dtype::kInt16>},
    {"tfl.log", "", kAnyType, "lite:lines", RunSamples, PrepareSamples<LogOf>,
     DeclineUnless<Dtype::kInt16>},
    {"tfl.gelu", "", kAnyType, "lite:lines", RunSamples, PrepareSamples<GeluOf>,
     DeclineUnless<Dtype::kInt16>},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteFunctionKernels = lite::kLiteFunctionTable;
}  // namespace smelt
