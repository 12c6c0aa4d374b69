#include "smelt/lite/quantize/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "smelt/base/parallel.h"
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

// The largest step of which each number is a multiple, at most the `top`th; 0: there is none.
float StepOf(std::span<const float> numbers, int top) {
  // What float arithmetic moves a multiple by is far less, and a random number is seldom so near.
  constexpr float kNear = 1e-3f;
  float most = 0;
  for (const float v : numbers) most = std::max(most, std::abs(v));
  if (most == 0) return 1;
  for (int k = 1; k <= top; ++k) {
    const float per = static_cast<float>(k) / most;
    if (std::ranges::all_of(
            numbers, [&](float v) { return std::abs(v * per - std::round(v * per)) <= kNear; })) {
      return most / static_cast<float>(k);
    }
  }
  return 0;
}

Dtype TypeOf(int bits) { return bits <= 4 ? Dtype::kInt4 : Dtype::kInt8; }

int8_t* StepsOf(Tensor& t) { return static_cast<int8_t*>(t.raw()); }

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
  ASSIGN_OR_RETURN(QuantizedWeights out, QuantizeWeights(rows, 0, bits));
  const auto top = static_cast<float>((1 << (bits - 1)) - 1);
  for (size_t b = 0; b < out.scales.size(); ++b) {
    const float scale = out.scales[b] = BlockScaleOf(out.scales[b]);
    if (!(scale <= 65504)) return InvalidArgument("a block of weights has the scale ", scale);
    const auto at = static_cast<int64_t>(b) * block;
    for (int64_t i = at; i < at + block; ++i) {
      const float q = std::round(weights.data<float>()[i] / scale);
      StepsOf(out.values)[i] = static_cast<int8_t>(std::clamp(q, -top, top));
    }
  }
  out.values = out.values.WithShape(weights.shape());
  return out;
}

std::optional<QuantizedWeights> OnGrid(const Tensor& weights, int dim, int bits) {
  const int top = (1 << (bits - 1)) - 1;
  const auto all = weights.flat<float>();
  QuantizedWeights out;
  if (const float step = StepOf(all, top); step > 0) {
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
      out.scales.push_back(StepOf(channel, top));
      if (out.scales.back() == 0) return std::nullopt;
    }
  }
  auto values = Tensor::Make(TypeOf(bits), weights.shape());
  if (!values.ok()) return std::nullopt;
  out.values = *std::move(values);
  ForEachRun(weights.shape(), dim, [&](int64_t c, int64_t at, int64_t count) {
    for (int64_t i = at; i < at + count; ++i) {
      const float q = std::round(all[static_cast<size_t>(i)] / out.scales[static_cast<size_t>(c)]);
      StepsOf(out.values)[i] = static_cast<int8_t>(q);
    }
  });
  return out;
}

StatusOr<QuantizedWeights> QuantizeWeights(const Tensor& weights, int dim, int bits) {
  const Shape& s = weights.shape();
  const int64_t channels = dim < 0 ? 1 : s[dim];
  const int64_t outer = dim < 0 ? 1 : s.Product(0, dim);
  const int64_t inner = dim < 0 ? s.num_elements() : s.Product(dim + 1, s.rank());
  const float* from = weights.data<float>();
  std::vector<float> largest(static_cast<size_t>(channels), 0.0f);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < channels; ++c) {
      const float* row = from + (o * channels + c) * inner;
      float most = largest[static_cast<size_t>(c)];
      for (int64_t i = 0; i < inner; ++i) {
        // Not finite: NaN is greater than nothing.
        if (!(std::abs(row[i]) <= std::numeric_limits<float>::max())) {
          return InvalidArgument("a weight is ", row[i]);
        }
        most = std::max(most, std::abs(row[i]));
      }
      largest[static_cast<size_t>(c)] = most;
    }
  }
  const auto top = static_cast<float>((1 << (bits - 1)) - 1);
  QuantizedWeights out;
  for (const float l : largest) out.scales.push_back(l == 0 ? 1.0f : l / top);
  ASSIGN_OR_RETURN(out.values, Tensor::Make(TypeOf(bits), s));
  int8_t* to = StepsOf(out.values);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < channels; ++c) {
      const float scale = out.scales[static_cast<size_t>(c)];
      const int64_t at = (o * channels + c) * inner;
      for (int64_t i = 0; i < inner; ++i) {
        const float q = std::round(from[at + i] / scale);
        to[at + i] = static_cast<int8_t>(std::clamp(q, -top, top));
      }
    }
  }
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
