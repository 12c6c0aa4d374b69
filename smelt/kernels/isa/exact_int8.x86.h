// What becomes of sums of 32 bits, as ExactInt8Steps says, in vectors. For the sources of this
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

// Factors of eight columns.
struct Factors8 {
  __m256i fraction, odd_fraction, left, right, mask, half;
};
SMELT_AVX2_INLINE __m256i Load8(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
SMELT_AVX2_INLINE void Store8(void* p, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), v);
}
// Of vectors.
SMELT_AVX2_INLINE Factors8 MakeFactors8(__m256i fraction, __m256i left, __m256i right) {
  Factors8 f;
  f.fraction = fraction;
  f.odd_fraction = _mm256_srli_epi64(f.fraction, 32);
  f.left = left;
  f.right = right;
  const __m256i one = _mm256_set1_epi32(1);
  f.mask = _mm256_sub_epi32(_mm256_sllv_epi32(one, f.right), one);
  f.half = _mm256_srli_epi32(f.mask, 1);
  return f;
}
SMELT_AVX2_INLINE Factors8 LoadFactors8(const ExactInt8Steps& s, int64_t at) {
  return MakeFactors8(Load8(s.fraction + at), Load8(s.left + at), Load8(s.right + at));
}

template <bool kLeft>
SMELT_AVX2_INLINE __m256i Scale8(__m256i sum, const Factors8& f) {
  if (kLeft) sum = _mm256_sllv_epi32(sum, f.left);
  const __m256i nudge = _mm256_set1_epi64x(int64_t{1} << 30);
  const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(sum, f.fraction), nudge);
  const __m256i odd =
      _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(sum, 32), f.odd_fraction), nudge);
  const __m256i t =
      _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa);
  const __m256i rest = _mm256_and_si256(t, f.mask);
  const __m256i threshold = _mm256_sub_epi32(f.half, _mm256_srai_epi32(t, 31));
  return _mm256_sub_epi32(_mm256_srav_epi32(t, f.right), _mm256_cmpgt_epi32(rest, threshold));
}

// What bounds results, in vectors: stores of bytes might change what lies in memory, for all that
// the compiler knows.
struct Bounds8 {
  __m256i zero;  // of 16 bits
  __m128i low, high;
};
SMELT_AVX2_INLINE Bounds8 MakeBounds8(const ExactInt8Steps& s) {
  return {_mm256_set1_epi16(static_cast<int16_t>(s.zero)),
          _mm_set1_epi8(static_cast<int8_t>(s.low)), _mm_set1_epi8(static_cast<int8_t>(s.high))};
}

// 16 scaled sums as int8, in the order in which the halves of the registers hold them: lanes 0 to 3
// of a, 0 to 3 of b, 4 to 7 of a, 4 to 7 of b.
SMELT_AVX2_INLINE __m128i Narrow16(__m256i a, __m256i b, const Bounds8& bounds) {
  const __m256i words = _mm256_adds_epi16(_mm256_packs_epi32(a, b), bounds.zero);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  return _mm_min_epi8(_mm_max_epi8(bytes, bounds.low), bounds.high);
}

// What becomes of sums, from the least work on.
enum class SumsWay : uint8_t { kStay, kPlain, kAny, kAnyLeft };

// Of plain steps. What is added before the shift rounds, and holds the zero point.
struct Plain8 {
  __m256i fraction, odd_fraction, right, offset;
  __m128i low, high;
};
SMELT_AVX2_INLINE Plain8 MakePlain8(__m256i fraction, __m256i right, const ExactInt8Steps& s) {
  Plain8 p;
  p.fraction = fraction;
  p.odd_fraction = _mm256_srli_epi64(fraction, 32);
  p.right = right;
  const __m256i unit = _mm256_sllv_epi32(_mm256_set1_epi32(1), right);
  p.offset = _mm256_add_epi32(_mm256_srli_epi32(unit, 1),
                              _mm256_sllv_epi32(_mm256_set1_epi32(s.zero), right));
  p.low = _mm_set1_epi8(static_cast<int8_t>(s.low));
  p.high = _mm_set1_epi8(static_cast<int8_t>(s.high));
  return p;
}
SMELT_AVX2_INLINE Plain8 LoadPlain8(const ExactInt8Steps& s, int64_t at) {
  return MakePlain8(Load8(s.fraction + at), Load8(s.right + at), s);
}
SMELT_AVX2_INLINE __m256i ScalePlain8(__m256i sum, const Plain8& p) {
  const __m256i nudge = _mm256_set1_epi64x(int64_t{1} << 30);
  const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(sum, p.fraction), nudge);
  const __m256i odd =
      _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(sum, 32), p.odd_fraction), nudge);
  const __m256i t =
      _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa);
  return _mm256_srav_epi32(
      _mm256_add_epi32(_mm256_add_epi32(t, p.offset), _mm256_srai_epi32(t, 31)), p.right);
}
// As Narrow16.
SMELT_AVX2_INLINE __m128i NarrowPlain16(__m256i a, __m256i b, const Plain8& p) {
  const __m256i words = _mm256_packs_epi32(a, b);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  return _mm_min_epi8(_mm_max_epi8(bytes, p.low), p.high);
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

struct Factors16 {
  __m512i fraction, odd_fraction, left, right, mask, half;
};
// Masks of all lanes: GCC warns of what its plain forms leave undefined.
SMELT_AVX512_INLINE Factors16 MakeFactors16(__m512i fraction, __m512i left, __m512i right) {
  Factors16 f;
  f.fraction = fraction;
  f.odd_fraction = _mm512_maskz_srli_epi64(0xff, f.fraction, 32);
  f.left = left;
  f.right = right;
  const __m512i one = _mm512_set1_epi32(1);
  f.mask = _mm512_sub_epi32(_mm512_maskz_sllv_epi32(0xffff, one, f.right), one);
  f.half = _mm512_maskz_srli_epi32(0xffff, f.mask, 1);
  return f;
}
SMELT_AVX512_INLINE Factors16 LoadFactors16(const ExactInt8Steps& s, int64_t at) {
  return MakeFactors16(_mm512_loadu_si512(s.fraction + at), _mm512_loadu_si512(s.left + at),
                       _mm512_loadu_si512(s.right + at));
}

SMELT_AVX512_INLINE __m512i Scale16(__m512i sum, const Factors16& f) {
  sum = _mm512_sllv_epi32(sum, f.left);
  const __m512i nudge = _mm512_set1_epi64(int64_t{1} << 30);
  const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(sum, f.fraction), nudge);
  const __m512i odd =
      _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(sum, 32), f.odd_fraction), nudge);
  const __m512i t =
      _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
  const __m512i rest = _mm512_and_si512(t, f.mask);
  const __m512i threshold = _mm512_sub_epi32(f.half, _mm512_srai_epi32(t, 31));
  return _mm512_mask_add_epi32(_mm512_srav_epi32(t, f.right),
                               _mm512_cmpgt_epi32_mask(rest, threshold),
                               _mm512_srav_epi32(t, f.right), _mm512_set1_epi32(1));
}

struct Bounds16 {
  __m512i low, high;  // less the zero point
  __m512i zero;
};
SMELT_AVX512_INLINE Bounds16 MakeBounds16(const ExactInt8Steps& s) {
  return {_mm512_set1_epi32(s.low - s.zero), _mm512_set1_epi32(s.high - s.zero),
          _mm512_set1_epi32(s.zero)};
}
SMELT_AVX512_INLINE __m128i NarrowTo8(__m512i v, const Bounds16& bounds) {
  v = _mm512_min_epi32(_mm512_max_epi32(v, bounds.low), bounds.high);
  return _mm512_cvtepi32_epi8(_mm512_add_epi32(v, bounds.zero));
}

// As Plain8.
struct Plain16 {
  __m512i fraction, odd_fraction, right, offset;
  __m128i low, high;
};
SMELT_AVX512_INLINE Plain16 MakePlain16(__m512i fraction, __m512i right, const ExactInt8Steps& s) {
  Plain16 p;
  p.fraction = fraction;
  p.odd_fraction = _mm512_maskz_srli_epi64(0xff, fraction, 32);
  p.right = right;
  const __m512i unit = _mm512_maskz_sllv_epi32(0xffff, _mm512_set1_epi32(1), right);
  p.offset = _mm512_add_epi32(_mm512_maskz_srli_epi32(0xffff, unit, 1),
                              _mm512_maskz_sllv_epi32(0xffff, _mm512_set1_epi32(s.zero), right));
  p.low = _mm_set1_epi8(static_cast<int8_t>(s.low));
  p.high = _mm_set1_epi8(static_cast<int8_t>(s.high));
  return p;
}
SMELT_AVX512_INLINE Plain16 LoadPlain16(const ExactInt8Steps& s, int64_t at) {
  return MakePlain16(_mm512_loadu_si512(s.fraction + at), _mm512_loadu_si512(s.right + at), s);
}
SMELT_AVX512_INLINE __m128i FinishPlain16(__m512i sum, const Plain16& p) {
  const __m512i nudge = _mm512_set1_epi64(int64_t{1} << 30);
  const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(sum, p.fraction), nudge);
  const __m512i odd =
      _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(sum, 32), p.odd_fraction), nudge);
  const __m512i t =
      _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(t, p.offset), _mm512_srai_epi32(t, 31));
  const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_srav_epi32(rounded, p.right));
  return _mm_min_epi8(_mm_max_epi8(bytes, p.low), p.high);
}

// Depthwise layers by AVX512-VNNI.
void FillExactInt8Depthwise(ExactInt8Loops& t);
// Tiles of AMX.
void FillExactInt8Matrices(ExactInt8Loops& t);
// Their loops over pairs: AVX2's, or AVX-512's.
void FillExactInt8Pairs(ExactInt8Loops& t, bool avx512);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_EXACT_INT8_X86_H_
