// x * sigmoid(x) of sixteen floats, for loops that keep their sums in registers. Included where the
// caller is compiled for AVX-512 alone.
#ifndef SMELT_KERNELS_ISA_SWISH_X86_H_
#define SMELT_KERNELS_ISA_SWISH_X86_H_

#include <immintrin.h>

namespace smelt {

// Off by at most 4e-6 of the result, which is the exponent's rounding where x is far below 0; below
// -83, where results are less than 1e-34, they stay about there. NaN stays.
__attribute__((target("avx512f"), always_inline)) inline __m512 SwishAvx512(__m512 x) {
  // exp(-x) is 2^k (1 + r p). Beyond 2^120 the result is as good as 0, and its reciprocal is exact
  // enough; the minimum's second operand is what a NaN becomes.
  const __m512 t = _mm512_min_ps(_mm512_set1_ps(120.0f),
                                 _mm512_mul_ps(x, _mm512_set1_ps(-1.44269504088896341f)));
  const __m512 k = _mm512_roundscale_ps(t, 8);  // to the nearest, without exceptions
  const __m512 r = _mm512_sub_ps(t, k);         // in [-1/2, 1/2], exact
  __m512 p = _mm512_set1_ps(1.327647166e-3f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.675541332e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.550713275e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.402211972e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.931469671e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.000000072f));
  const __m512 d = _mm512_add_ps(_mm512_scalef_ps(p, k), _mm512_set1_ps(1.0f));
  // One step of Newton's takes the processor's 14 bits to all.
  __m512 y = _mm512_rcp14_ps(d);
  y = _mm512_fmadd_ps(_mm512_fnmadd_ps(d, y, _mm512_set1_ps(1.0f)), y, y);
  return _mm512_mul_ps(x, y);
}

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_SWISH_X86_H_
