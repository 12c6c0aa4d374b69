// Those of ExactInt8Loops whose floats are rounded after each operation: compiled without fused
// ones (cmake/isa.cmake).
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/isa/loop.inc"
#include "smelt/kernels/isa/vector.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
namespace {

// The extremes of a row and 0; 0 and NaN where a number is none or infinite.
inline __attribute__((always_inline)) void RangeOfRow(const float* x, int64_t n, float* low,
                                                      float* high) {
  Vec least = {}, most = {}, broken = {};
  int64_t i = 0;
  const auto take = [&](Vec v) __attribute__((always_inline)) {
    least = v < least ? v : least;
    most = v > most ? v : most;
    broken += v - v;
  };
  for (; i + kLanes <= n; i += kLanes) take(LoadVec(x + i));
  if (i < n) take(LoadFirst(x + i, n - i));
  const auto fold = [&]<typename V>(const auto& self, V a, V b, V c)
      __attribute__((always_inline)) {
    if constexpr (kCountOf < V >> 4) {
      const auto al = LowHalf(a), ah = HighHalf(a), bl = LowHalf(b), bh = HighHalf(b);
      self(self, al < ah ? al : ah, bl > bh ? bl : bh, LowHalf(c) + HighHalf(c));
    } else {
      float l = a[0], h = b[0];
      for (int64_t k = 1; k < 4; ++k) {
        l = a[k] < l ? a[k] : l;
        h = b[k] > h ? b[k] : h;
      }
      *low = l;
      *high = h + (c[0] + c[1] + (c[2] + c[3]));
    }
  };
  fold(fold, least, most, broken);
}

void StepsOfRows(const float* x, int64_t rows, int64_t n, ExactInt8Steps* steps) {
  constexpr int64_t kBlock = 16;
  float low[kBlock] = {}, high[kBlock] = {}, scale[kBlock], inverse[kBlock], whole[kBlock];
  for (int64_t begin = 0; begin < rows; begin += kBlock) {
    const int64_t count = rows - begin < kBlock ? rows - begin : kBlock;
    for (int64_t r = 0; r < count; ++r) RangeOfRow(x + (begin + r) * n, n, low + r, high + r);
    SMELT_LOOP for (int64_t r = 0; r < kBlock; ++r) {
      const float range = high[r] - low[r], by = 255.0f / range;
      const float at_low = low[r] * by, at_high = high[r] * by;
      float zero =
          at_low - 128.0f + (at_high + 127.0f) > 0.0f ? -128.0f - at_low : 127.0f - at_high;
      zero = zero > -128.0f ? zero : -128.0f;
      zero = zero < 127.0f ? zero : 127.0f;
      // Comparisons with a NaN are false.
      const bool is = (range > 0.0f) & (range < __builtin_inff()) & (by < __builtin_inff());
      whole[r] = is ? __builtin_rintf(zero) : 0.0f;
      inverse[r] = is ? by : 0.0f;
      scale[r] = is ? 1.0f / by : 1.0f;
    }
    for (int64_t r = 0; r < count; ++r) {
      const bool is = inverse[r] != 0.0f;
      steps[begin + r] = {scale[r], inverse[r], is ? -128.0f - whole[r] : 0.0f,
                          is ? 127.0f - whole[r] : 0.0f};
    }
  }
}

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
  t.steps_of_rows = StepsOfRows;
  t.steps_away_of = StepsAwayOf;
  t.to_float_by_four = ToFloatByFour;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
