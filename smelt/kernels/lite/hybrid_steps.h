// Float numbers as integers that XNNPACK's layers of "dynamic range" quantize them to on the way.
#ifndef SMELT_KERNELS_LITE_HYBRID_STEPS_H_
#define SMELT_KERNELS_LITE_HYBRID_STEPS_H_

#include <algorithm>
#include <cmath>

namespace smelt::lite {

// x = scale * s, where s is a whole number within [low, high]: a step of int8 less the zero point.
struct HybridSteps {
  float scale = 0, inverse = 0;
  float low = 0, high = 0;
};

// Of numbers within [low, high], of which 0 is one.
inline HybridSteps StepsOfRange(float low, float high) {
  const float range = high - low;
  // Numbers that have no range stand for 0, and so do those that are none.
  if (!(range > 0) || !std::isfinite(range)) return {1, 0, 0, 0};
  HybridSteps s;
  s.inverse = 255.0f / range;
  s.scale = 1.0f / s.inverse;
  const float at_low = low * s.inverse, at_high = high * s.inverse;
  const float zero = at_low - 128 + (at_high + 127) > 0 ? -128 - at_low : 127 - at_high;
  const float whole = std::nearbyint(std::clamp(zero, -128.0f, 127.0f));
  if (!std::isfinite(s.inverse)) return {1, 0, 0, 0};
  s.low = -128 - whole;
  s.high = 127 - whole;
  return s;
}

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_HYBRID_STEPS_H_
