#include "smelt/lite/quantize/weights.h"

#include <algorithm>
#include <cmath>

#include "smelt/base/parallel.h"
#include "smelt/tensor/float16.h"

namespace smelt {

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
  ASSIGN_OR_RETURN(out.values, Tensor::Make(Dtype::kInt8, s));
  auto* to = out.values.data<int8_t>();
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
