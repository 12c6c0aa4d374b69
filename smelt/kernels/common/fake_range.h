// The attributes of TensorFlow's FakeQuant ops and their gradients, and the range of simulated
// quantization, as they nudge it. Thread safe.
#ifndef SMELT_KERNELS_COMMON_FAKE_RANGE_H_
#define SMELT_KERNELS_COMMON_FAKE_RANGE_H_

#include <cmath>

#include "smelt/kernels/common/binds_by_function.h"

namespace smelt::quantized {

struct FakeQuantState final : BindsByFunction<FakeQuantState> {
  float quant_min = 0, quant_max = 255;
  float min = 0, max = 0;  // of the ops that have them as attributes
};
// A prepare function. INVALID_ARGUMENT for other bits than 2 to 16 and for an empty range.
StatusOr<std::unique_ptr<KernelState>> ReadFakeQuant(const Node& node);

// The range [min, max] moved so that 0 is a quantized value. Quantized values are the integers in
// [quant_min, quant_max]; `zero` is how many steps of `scale` 0 lies above `lo`.
// REQUIRES: min < max, quant_min < quant_max.
struct NudgedRange {
  float lo, hi, scale, inv_scale, zero;
};
inline NudgedRange Nudge(float quant_min, float quant_max, float min, float max) {
  NudgedRange r;
  r.scale = (max - min) / (quant_max - quant_min);
  r.inv_scale = (quant_max - quant_min) / (max - min);
  const float from_min = quant_min - min / r.scale;
  float zero_point = std::floor(from_min + 0.5f);
  if (from_min < quant_min) zero_point = quant_min;
  if (from_min > quant_max) zero_point = quant_max;
  r.lo = (quant_min - zero_point) * r.scale;
  r.hi = (quant_max - zero_point) * r.scale;
  r.zero = std::floor(-r.lo / r.scale + 0.5f);
  return r;
}

}  // namespace smelt::quantized

#endif  // SMELT_KERNELS_COMMON_FAKE_RANGE_H_
