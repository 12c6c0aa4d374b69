// What becomes of sums of 32 bits, as ExactInt8Scales says, in vectors. For the sources of this
// folder that hold loops of int8.
#ifndef SMELT_KERNELS_ISA_EXACT_INT8_X86_H_
#define SMELT_KERNELS_ISA_EXACT_INT8_X86_H_

#include <immintrin.h>

#include <cstring>

#include "smelt/kernels/isa/exact_int8.h"

#define SMELT_AVX2 __attribute__((target("avx2")))
#define SMELT_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define SMELT_AVX512_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define SMELT_AVX2_INLINE SMELT_AVX2 __attribute__((always_inline)) inline
#define SMELT_AVX512_INLINE SMELT_AVX512 __attribute__((always_inline)) inline

namespace smelt {

SMELT_AVX2_INLINE __m256i Load8(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
SMELT_AVX2_INLINE void Store8(void* p, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), v);
}
// Of eight columns. Bounds are vectors, as stores of bytes might change what lies in memory, for
// all that the compiler knows.
struct Scales8 {
  __m256 scale, low, high;
  __m256i zero;
};
SMELT_AVX2_INLINE Scales8 MakeScales8(__m256 scale, const ExactInt8Scales& s) {
  return {scale, _mm256_set1_ps(static_cast<float>(s.low - s.zero)),
          _mm256_set1_ps(static_cast<float>(s.high - s.zero)), _mm256_set1_epi32(s.zero)};
}
SMELT_AVX2_INLINE Scales8 LoadScales8(const ExactInt8Scales& s, int64_t at) {
  return MakeScales8(_mm256_loadu_ps(s.scale + at), s);
}
// Within the range of int8. Of a number and none, a minimum is its second operand.
SMELT_AVX2_INLINE __m256i Scale8(__m256i sum, const Scales8& s) {
  const __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), s.scale);
  return _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_max_ps(_mm256_min_ps(v, s.high), s.low)),
                          s.zero);
}
// 16 numbers within the range of int8, in the order in which the halves of the registers hold them:
// lanes 0 to 3 of a, 0 to 3 of b, 4 to 7 of a, 4 to 7 of b.
SMELT_AVX2_INLINE __m128i Narrow16(__m256i a, __m256i b) {
  const __m256i words = _mm256_packs_epi32(a, b);
  return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}
// In the order of columns.
SMELT_AVX2_INLINE __m128i NarrowInOrder16(__m256i a, __m256i b) {
  return Narrow16(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

SMELT_AVX2_INLINE void StorePart(int8_t* to, __m128i bytes, int64_t n) {
  if (n >= 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    return;
  }
  int8_t part[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(part), bytes);
  std::memcpy(to, part, static_cast<size_t>(n));
}

struct Scales16 {
  __m512 scale, low, high;
  __m512i zero;
};
SMELT_AVX512_INLINE Scales16 MakeScales16(__m512 scale, const ExactInt8Scales& s) {
  return {scale, _mm512_set1_ps(static_cast<float>(s.low - s.zero)),
          _mm512_set1_ps(static_cast<float>(s.high - s.zero)), _mm512_set1_epi32(s.zero)};
}
SMELT_AVX512_INLINE Scales16 LoadScales16(const ExactInt8Scales& s, int64_t at) {
  return MakeScales16(_mm512_loadu_ps(s.scale + at), s);
}
// Masks of all lanes: GCC warns of what its plain forms leave undefined.
SMELT_AVX512_INLINE __m128i Finish16(__m512i sum, const Scales16& s) {
  const __m512 v = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, sum), s.scale);
  const __m512 within = _mm512_maskz_max_ps(0xffff, _mm512_maskz_min_ps(0xffff, v, s.high), s.low);
  return _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_maskz_cvtps_epi32(0xffff, within), s.zero));
}

// Rows of 32 columns, of which the first `columns` are written; two rows at a time fill a register
// of bytes. REQUIRES: the zero point fits int8.
class Finish32 {
 public:
  SMELT_AVX512_INLINE Finish32(const ExactInt8Scales& s, int64_t columns)
      : scale0_(_mm512_loadu_ps(s.scale)),
        scale1_(_mm512_loadu_ps(s.scale + 16)),
        high_(_mm512_set1_ps(static_cast<float>(s.high - s.zero))),
        zero_(_mm512_set1_epi16(static_cast<int16_t>(s.zero))),
        low_(_mm512_set1_epi8(static_cast<char>(s.low))),
        mask_(static_cast<__mmask32>(columns >= 32 ? ~0U : (1U << columns) - 1)) {}

  // y1 may be y0: then the row is written once more.
  SMELT_AVX512_INLINE void Store(__m512i a0, __m512i a1, int8_t* y0, __m512i b0, __m512i b1,
                                 int8_t* y1) const {
    // Lanes hold 4 numbers of each half of both rows.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_max_epi8(
        _mm512_permutexvar_epi32(order, _mm512_packs_epi16(Words(a0, a1), Words(b0, b1))), low_);
    if (mask_ == ~0U) {
      Store8(y1, _mm512_maskz_extracti64x4_epi64(0xff, bytes, 1));
      Store8(y0, _mm512_castsi512_si256(bytes));
    } else {
      _mm256_mask_storeu_epi8(y1, mask_, _mm512_maskz_extracti64x4_epi64(0xff, bytes, 1));
      _mm256_mask_storeu_epi8(y0, mask_, _mm512_castsi512_si256(bytes));
    }
  }

 private:
  // A sum below int32 becomes its least number, one above it is bounded before.
  SMELT_AVX512_INLINE __m512i Rounded(__m512i sum, __m512 scale) const {
    const __m512 v = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, sum), scale);
    return _mm512_maskz_cvtps_epi32(0xffff, _mm512_maskz_min_ps(0xffff, v, high_));
  }
  SMELT_AVX512_INLINE __m512i Words(__m512i s0, __m512i s1) const {
    return _mm512_adds_epi16(_mm512_packs_epi32(Rounded(s0, scale0_), Rounded(s1, scale1_)), zero_);
  }

  const __m512 scale0_, scale1_, high_;
  const __m512i zero_, low_;
  const __mmask32 mask_;
};

// Depthwise layers by AVX512-VNNI.
void FillExactInt8Depthwise(ExactInt8Loops& t);
// Tiles of AMX.
void FillExactInt8Matrices(ExactInt8Loops& t);
// Their loops over pairs: AVX2's, or AVX-512's.
void FillExactInt8Pairs(ExactInt8Loops& t, bool avx512);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_EXACT_INT8_X86_H_
