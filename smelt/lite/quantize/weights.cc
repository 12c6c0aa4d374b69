#include "smelt/lite/quantize/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "smelt/base/parallel.h"
#include "smelt/lite/quantize/integer_format.h"
#include "smelt/tensor/float16.h"

namespace smelt {
namespace {

// Calls visit(channel, first element, elements) for each run of elements that lie together.
template <typename Visit>
void ForEachRun(const Shape& s, int dim, Visit visit) {
  const int64_t channels = dim < 0 ? 1 : s[dim];
  const int64_t outer = dim < 0 ? 1 : s.Product(0, dim);
  const int64_t inner = dim < 0 ? s.num_elements() : s.Product(dim + 1, s.rank());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < channels; ++c) visit(c, (o * channels + c) * inner, inner);
  }
}

// The largest step of which each number is a multiple, at least the `low`th and at most the
// `top`th; 0: there is none.
float StepOf(std::span<const float> numbers, int top, int low) {
  // What float arithmetic moves a multiple by is far less, and a random number is seldom so near.
  constexpr float kNear = 1e-3f;
  float most = 0;
  for (const float v : numbers) most = std::max(most, std::abs(v));
  if (most == 0) return 1;
  for (int k = 1; k <= std::max(top, -low); ++k) {
    const float per = static_cast<float>(k) / most;
    if (std::ranges::all_of(numbers, [&](float v) {
          const float at = std::round(v * per);
          return std::abs(v * per - at) <= kNear && at <= static_cast<float>(top) &&
                 at >= static_cast<float>(low);
        })) {
      return most / static_cast<float>(k);
    }
  }
  return 0;
}

int TopOf(int bits) { return (1 << (bits - 1)) - 1; }

// By which the largest number is the last step.
StatusOr<std::vector<float>> ScalesOf(const Tensor& weights, int dim, int bits) {
  const float* from = weights.data<float>();
  std::vector<float> scales(static_cast<size_t>(dim < 0 ? 1 : weights.shape()[dim]), 0.0f);
  std::optional<float> odd;
  ForEachRun(weights.shape(), dim, [&](int64_t c, int64_t at, int64_t count) {
    float most = scales[static_cast<size_t>(c)];
    for (int64_t i = at; i < at + count; ++i) {
      const float size = std::abs(from[i]);
      // Not finite: NaN is greater than nothing.
      if (!(size <= std::numeric_limits<float>::max()) && !odd) odd = from[i];
      most = std::max(most, size);
    }
    scales[static_cast<size_t>(c)] = most;
  });
  if (odd) return InvalidArgument("a weight is ", *odd);
  for (float& s : scales) s = s == 0 ? 1.0f : s / static_cast<float>(TopOf(bits));
  return scales;
}

// The nearest steps of the scales.
StatusOr<Tensor> StepsBy(std::span<const float> scales, const Tensor& weights, int dim, int bits,
                         bool whole = false) {
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::Make(bits <= 4 ? Dtype::kInt4 : Dtype::kInt8, weights.shape()));
  const float* from = weights.data<float>();
  auto* to = static_cast<int8_t*>(out.raw());
  const auto top = static_cast<float>(TopOf(bits)), low = whole ? -top - 1 : -top;
  ForEachRun(weights.shape(), dim, [&](int64_t c, int64_t at, int64_t count) {
    const float scale = scales[static_cast<size_t>(c)];
    for (int64_t i = at; i < at + count; ++i) {
      to[i] = static_cast<int8_t>(std::clamp(std::round(from[i] / scale), low, top));
    }
  });
  return out;
}

// At least `scale`, in 8 bits of fraction and no finer than float16 can say.
float BlockScaleOf(float scale) {
  constexpr float kFinest = 1.0f / (1 << 24);
  int exponent = 0;
  const float fraction = std::frexp(scale, &exponent);
  const float rounded = std::ldexp(std::ceil(std::ldexp(fraction, 8)), exponent - 8);
  return std::ceil(rounded / kFinest) * kFinest;
}

}  // namespace

StatusOr<QuantizedWeights> QuantizeBlocks(const Tensor& weights, int64_t block, int bits) {
  const Tensor rows = weights.WithShape(Shape({weights.num_elements() / block, block}));
  QuantizedWeights out;
  ASSIGN_OR_RETURN(out.scales, ScalesOf(rows, 0, bits));
  for (float& scale : out.scales) {
    scale = BlockScaleOf(scale);
    if (!(scale <= 65504)) return InvalidArgument("a block of weights has the scale ", scale);
  }
  ASSIGN_OR_RETURN(const Tensor values, StepsBy(out.scales, rows, 0, bits));
  out.values = values.WithShape(weights.shape());
  return out;
}

std::optional<QuantizedWeights> OnGrid(const Tensor& weights, int dim, int bits, bool whole) {
  const int top = TopOf(bits), low = whole ? -top - 1 : -top;
  const auto all = weights.flat<float>();
  QuantizedWeights out;
  if (const float step = StepOf(all, top, low); step > 0) {
    out.scales = {step};
    dim = -1;
  } else if (dim < 0) {
    return std::nullopt;
  } else {
    std::vector<std::vector<float>> channels(static_cast<size_t>(weights.shape()[dim]));
    ForEachRun(weights.shape(), dim, [&](int64_t c, int64_t at, int64_t count) {
      auto& to = channels[static_cast<size_t>(c)];
      to.insert(to.end(), all.begin() + at, all.begin() + at + count);
    });
    for (const auto& channel : channels) {
      out.scales.push_back(StepOf(channel, top, low));
      if (out.scales.back() == 0) return std::nullopt;
    }
  }
  auto values = StepsBy(out.scales, weights, dim, bits, whole);
  if (!values.ok()) return std::nullopt;
  out.values = *std::move(values);
  return out;
}

StatusOr<QuantizedWeights> QuantizeWeights(const Tensor& weights, int dim, int bits,
                                           std::span<const float> least) {
  QuantizedWeights out;
  ASSIGN_OR_RETURN(out.scales, ScalesOf(weights, dim, bits));
  for (size_t i = 0; i < least.size(); ++i) out.scales[i] = std::max(out.scales[i], least[i]);
  ASSIGN_OR_RETURN(out.values, StepsBy(out.scales, weights, dim, bits));
  return out;
}

StatusOr<QuantizedWeights> QuantizeUint8(const Tensor& weights, bool on_grid) {
  constexpr int kTop = 255;
  float low = 0, high = 0;
  const auto all = weights.flat<float>();
  for (const float v : all) {
    if (!std::isfinite(v)) return InvalidArgument("a weight is ", v);
    low = std::min(low, v);
    high = std::max(high, v);
  }
  QuantizedWeights out;
  const float step = on_grid ? StepOf(all, kTop, -kTop) : 0;
  const auto least = static_cast<int64_t>(step > 0 ? std::round(low / step) : 0);
  const auto most = static_cast<int64_t>(step > 0 ? std::round(high / step) : 0);
  if (step > 0 && most - least <= kTop) {
    out.scales = {step};
    out.zero = least >= -128 && most < 128 ? 128 : -least;
  } else {
    const double scale = low == high ? 1
                                     : (static_cast<double>(high) - static_cast<double>(low)) /
                                           static_cast<double>(kTop - 1);
    out.scales = {static_cast<float>(scale)};
    out.zero = static_cast<int64_t>(std::round(1 - static_cast<double>(low) / scale));
  }
  ASSIGN_OR_RETURN(out.values, QuantizedTo(weights, {out.scales[0], out.zero}, kUint8Format));
  return out;
}

StatusOr<Tensor> HalfWeights(const Tensor& weights) {
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(Dtype::kHalf, weights.shape()));
  constexpr float kLargest = 65504;
  const auto from = weights.flat<float>();
  auto to = out.flat<Half>();
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = Half(std::isnan(from[i]) ? from[i] : std::clamp(from[i], -kLargest, kLargest));
  }
  return out;
}

}  // namespace smelt
