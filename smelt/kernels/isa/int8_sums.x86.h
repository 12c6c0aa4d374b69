// The way of sums of int8 layers back to int8, in vectors. For the sources of this folder that hold
// such loops.
#ifndef SMELT_KERNELS_ISA_INT8_SUMS_X86_H_
#define SMELT_KERNELS_ISA_INT8_SUMS_X86_H_

#include <immintrin.h>

#include <cstring>

#include "smelt/kernels/isa/int8_sums.h"

#define SMELT_SUMS __attribute__((target("avx2,fma")))
#define SMELT_SUMS_INLINE SMELT_SUMS __attribute__((always_inline)) inline

namespace smelt {

// The first n of 16 bytes; others are any.
SMELT_SUMS_INLINE __m128i LoadSumBytes(const int8_t* p, int64_t n) {
  if (n >= kInt8SumLanes) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  int8_t part[kInt8SumLanes] = {};
  std::memcpy(part, p, static_cast<size_t>(n));
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(part));
}
SMELT_SUMS_INLINE void StoreSumBytes(int8_t* p, __m128i bytes, int64_t n) {
  if (n >= kInt8SumLanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
    return;
  }
  int8_t part[kInt8SumLanes];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(part), bytes);
  std::memcpy(p, part, static_cast<size_t>(n));
}

// What a block says of the operand that is added.
struct AddedInt8 {
  __m256 zero, scale;
  __m128i flip;
  SMELT_SUMS_INLINE explicit AddedInt8(const Int8SumBlock& b)
      : zero(_mm256_set1_ps(b.addend_zero)),
        scale(_mm256_set1_ps(b.addend_scale)),
        flip(_mm_set1_epi8(static_cast<char>(b.addend_flip))) {}
  SMELT_SUMS_INLINE __m256 Add(__m128i bytes, __m256 v) const {
    const __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    return _mm256_fmadd_ps(_mm256_sub_ps(x, zero), scale, v);
  }
};

// What a block says of 16 columns, from `at` on, of which n are written.
template <bool kAdds>
struct SumsToBytes {
  __m256 scale0, scale1, zero, low, high;
  __m128i flip;
  AddedInt8 added;
  SMELT_SUMS_INLINE explicit SumsToBytes(const Int8SumBlock& b, int64_t at)
      : scale0(_mm256_loadu_ps(b.scales + at)),
        scale1(_mm256_loadu_ps(b.scales + at + 8)),
        zero(_mm256_set1_ps(b.zero)),
        low(_mm256_set1_ps(b.low)),
        high(_mm256_set1_ps(b.high)),
        flip(_mm_set1_epi8(static_cast<char>(b.flip))),
        added(b) {}
  // Of row r, whose numbers are `first` and `second`.
  SMELT_SUMS_INLINE void Store(const Int8SumBlock& b, int64_t r, int64_t at, int64_t n,
                               __m256 first, __m256 second) const {
    __m256 v0 = _mm256_fmadd_ps(first, scale0, zero);
    __m256 v1 = _mm256_fmadd_ps(second, scale1, zero);
    if (kAdds) {
      const __m128i x =
          _mm_xor_si128(LoadSumBytes(b.addend + r * b.addend_step + at, n), added.flip);
      v0 = added.Add(x, v0);
      v1 = added.Add(_mm_srli_si128(x, 8), v1);
    }
    // Of a NaN and a number these take the second.
    v0 = _mm256_min_ps(_mm256_max_ps(v0, low), high);
    v1 = _mm256_min_ps(_mm256_max_ps(v1, low), high);
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(_mm256_cvtps_epi32(v0), _mm256_cvtps_epi32(v1)), 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    StoreSumBytes(b.y + r * b.y_step + at, _mm_xor_si128(bytes, flip), n);
  }
};

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_INT8_SUMS_X86_H_
