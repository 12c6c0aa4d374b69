// How integers stand for reals.
#ifndef SMELT_LITE_QUANTIZE_INTEGER_FORMAT_H_
#define SMELT_LITE_QUANTIZE_INTEGER_FORMAT_H_

#include <algorithm>
#include <cmath>

#include "smelt/lite/quantize/calibrate.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// real = scale * (q - zero).
struct Params {
  float scale = 1;
  int64_t zero = 0;
  bool operator==(const Params&) const = default;
};

// The integers of activations, and those of the biases beside them.
struct IntegerFormat {
  Dtype type;
  int64_t low, high;
  bool symmetric;
  Dtype bias;
};
inline constexpr IntegerFormat kInt8Format = {Dtype::kInt8, -128, 127, false, Dtype::kInt32};
inline constexpr IntegerFormat kUint8Format = {Dtype::kUint8, 0, 255, false, Dtype::kInt32};
inline constexpr IntegerFormat kInt16Format = {Dtype::kInt16, -32768, 32767, true, Dtype::kInt64};

// A range is widened to have zero, so that padding is exact.
inline Params ParamsOf(LiteRange range, const IntegerFormat& f) {
  const double low = std::min(range.min, 0.0f), high = std::max(range.max, 0.0f);
  if (low == high) return {1.0f, 0};
  if (f.symmetric) {
    return {static_cast<float>(std::max(-low, high) / static_cast<double>(f.high)), 0};
  }
  const double scale = (high - low) / static_cast<double>(f.high - f.low);
  const double zero = static_cast<double>(f.low) - low / scale;
  return {static_cast<float>(scale),
          std::clamp(static_cast<int64_t>(std::round(zero)), f.low, f.high)};
}

// Finite floats as integers of the format, which saturate.
StatusOr<Tensor> QuantizedTo(const Tensor& value, const Params& p, const IntegerFormat& f);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_INTEGER_FORMAT_H_
