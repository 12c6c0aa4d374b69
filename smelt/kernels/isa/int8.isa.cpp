#include "smelt/kernels/isa/int8.h"

namespace smelt::SMELT_ISA_NAMESPACE {
namespace {

void Quantize(const float* x, int8_t* y, int64_t n, float scale, float zero, float low,
              float high) {
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i] / scale + zero;
    v = v > low ? v : low;
    v = v < high ? v : high;
    y[i] = static_cast<int8_t>(static_cast<int32_t>(__builtin_rintf(v)));
  }
}

void QuantizeUnsigned(const float* x, uint8_t* y, int64_t n, float scale, float zero, float low,
                      float high) {
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i] / scale + zero;
    v = v > low ? v : low;
    v = v < high ? v : high;
    y[i] = static_cast<uint8_t>(static_cast<int32_t>(__builtin_rintf(v)) + 128);
  }
}

void DequantizeUnsigned(const uint8_t* x, float* y, int64_t n, float scale, float zero) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = (static_cast<float>(static_cast<int32_t>(x[i]) - 128) - zero) * scale;
  }
}

void Dequantize(const int8_t* x, float* y, int64_t n, float scale, float zero) {
  for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - zero) * scale;
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
  t.quantize = Quantize;
  t.dequantize = Dequantize;
  t.quantize_unsigned = QuantizeUnsigned;
  t.dequantize_unsigned = DequantizeUnsigned;
  t.scale_sums = ScaleSums;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
