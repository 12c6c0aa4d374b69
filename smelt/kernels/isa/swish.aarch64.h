// x * sigmoid(x) of four floats, for loops that keep their sums in registers.
#ifndef SMELT_KERNELS_ISA_SWISH_AARCH64_H_
#define SMELT_KERNELS_ISA_SWISH_AARCH64_H_

#include <arm_neon.h>

namespace smelt {

// As that of swish.x86.h, with the same polynomial. NaN stays.
__attribute__((always_inline)) inline float32x4_t SwishNeon(float32x4_t x) {
  // exp(-x) is 2^k (1 + r p). Beyond these bounds it is nothing beside 1, or the result as good as
  // 0.
  float32x4_t t = vmulq_f32(x, vdupq_n_f32(-1.44269504088896341f));
  t = vminq_f32(vmaxq_f32(t, vdupq_n_f32(-126.0f)), vdupq_n_f32(120.0f));
  const float32x4_t k = vrndnq_f32(t);
  const float32x4_t r = vsubq_f32(t, k);  // in [-1/2, 1/2], exact
  float32x4_t p = vdupq_n_f32(1.327647166e-3f);
  p = vfmaq_f32(vdupq_n_f32(9.675541332e-3f), p, r);
  p = vfmaq_f32(vdupq_n_f32(5.550713275e-2f), p, r);
  p = vfmaq_f32(vdupq_n_f32(2.402211972e-1f), p, r);
  p = vfmaq_f32(vdupq_n_f32(6.931469671e-1f), p, r);
  p = vfmaq_f32(vdupq_n_f32(1.000000072f), p, r);
  const int32x4_t exponent = vaddq_s32(vcvtq_s32_f32(k), vdupq_n_s32(127));
  const float32x4_t power = vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23));
  return vdivq_f32(x, vfmaq_f32(vdupq_n_f32(1.0f), p, power));
}

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_SWISH_AARCH64_H_
