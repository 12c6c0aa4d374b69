// Those of ExactInt8Loops whose floats are rounded after each operation: compiled without fused
// ones (cmake/isa.cmake).
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/isa/loop.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
namespace {

void StepsAwayOf(const float* x, int16_t* y, int64_t n, float inverse, float low, float high) {
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) {
    float v = x[i] * inverse;
    v = v > low ? v : low;
    v = v < high ? v : high;
    const float whole = __builtin_truncf(v), rest = v - whole;
    const float away = rest >= 0.5f ? 1.0f : rest <= -0.5f ? -1.0f : 0.0f;
    y[i] = static_cast<int16_t>(static_cast<int32_t>(whole + away));
  }
}

void ToFloatByFour(const int32_t* sums, float scale, const float* scales, const float* bias,
                   float low, float high, float* y, int64_t n) {
  const auto clamped = [&](float v) {
    v = v < low ? low : v;
    return v > high ? high : v;
  };
  const int64_t by_four = n / 4 * 4;
  SMELT_LOOP for (int64_t i = 0; i < by_four; ++i) {
    y[i] = clamped(static_cast<float>(sums[i]) * scales[i] * scale + bias[i]);
  }
  for (int64_t i = by_four; i < n; ++i) {
    y[i] = clamped(static_cast<float>(sums[i]) * scale * scales[i] + bias[i]);
  }
}

}  // namespace

void FillRoundedInt8(ExactInt8Loops& t);
void FillRoundedInt8(ExactInt8Loops& t) {
  t.steps_away_of = StepsAwayOf;
  t.to_float_by_four = ToFloatByFour;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
