#include "smelt/kernels/isa/int8.h"

namespace smelt::SMELT_ISA_NAMESPACE {
namespace {

// T: int8_t, or uint8_t for numbers that are stored as 128 more.
template <typename T>
constexpr int32_t kStoredMore = static_cast<T>(-1) < 0 ? 0 : 128;

template <typename T>
void Quantize(const float* x, T* y, int64_t n, float scale, float zero, float low, float high) {
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i] / scale + zero;
    v = v > low ? v : low;
    v = v < high ? v : high;
    y[i] = static_cast<T>(static_cast<int32_t>(__builtin_rintf(v)) + kStoredMore<T>);
  }
}

template <typename T>
void Dequantize(const T* x, float* y, int64_t n, float scale, float zero) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = (static_cast<float>(static_cast<int32_t>(x[i]) - kStoredMore<T>) - zero) * scale;
  }
}

void ScaleSums(const float* x, const int32_t* bias, const float* scale, int64_t scale_step,
               float* y, int64_t n) {
  if (scale_step == 0) {
    const float s = scale[0];
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] + static_cast<float>(bias[i])) * s;
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] + static_cast<float>(bias[i])) * scale[i];
}

}  // namespace

void FillInt8(Int8Loops& t);
void FillInt8(Int8Loops& t) {
  t.quantize = Quantize<int8_t>;
  t.dequantize = Dequantize<int8_t>;
  t.quantize_unsigned = Quantize<uint8_t>;
  t.dequantize_unsigned = Dequantize<uint8_t>;
  t.scale_sums = ScaleSums;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
