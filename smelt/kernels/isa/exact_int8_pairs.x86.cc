// Sums and products of two int8 numbers.
#include "smelt/kernels/isa/exact_int8.x86.h"

namespace smelt {
namespace {

using Operand = ExactInt8Loops::Operand;

// 16 numbers; of the last ones of a row, `n` and any.
SMELT_AVX2_INLINE __m128i Load16(const Operand& o, int64_t at, int64_t n) {
  if (o.step == 0) return _mm_set1_epi8(*o.x);
  if (n >= 16) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(o.x + at));
  int8_t part[16] = {};
  std::memcpy(part, o.x + at, static_cast<size_t>(n));
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(part));
}

SMELT_AVX2_INLINE __m256i Wide8(__m128i x) { return _mm256_cvtepi8_epi32(x); }

// Stores what fn makes of eight numbers of each.
template <typename F>
SMELT_AVX2_INLINE void ForBoth8(const Operand& a, const Operand& b, int8_t* y, int64_t n, F fn) {
  for (int64_t i = 0; i < n; i += 16) {
    const __m128i p = Load16(a, i, n - i), q = Load16(b, i, n - i);
    const __m256i front = fn(Wide8(p), Wide8(q));
    const __m256i back = fn(Wide8(_mm_srli_si128(p, 8)), Wide8(_mm_srli_si128(q, 8)));
    StorePart(y + i, NarrowInOrder16(front, back), n - i);
  }
}

SMELT_AVX2 void AddAvx2(const Operand& a, const Operand& b, const ExactInt8Sum& sum, int8_t* y,
                        int64_t n) {
  const __m256i first = _mm256_set1_epi32(a.times), second = _mm256_set1_epi32(b.times);
  const __m256i offset = _mm256_set1_epi32(sum.offset), zero = _mm256_set1_epi32(sum.zero);
  const __m256i low = _mm256_set1_epi32(sum.low - sum.zero);
  const __m256i high = _mm256_set1_epi32(sum.high - sum.zero);
  const __m128i right = _mm_cvtsi32_si128(sum.right);
  ForBoth8(
      a, b, y, n, [=](__m256i p, __m256i q) SMELT_AVX2 __attribute__((always_inline)) {
        const __m256i t = _mm256_add_epi32(_mm256_add_epi32(offset, _mm256_mullo_epi32(p, first)),
                                           _mm256_mullo_epi32(q, second));
        const __m256i shifted = _mm256_sra_epi32(t, right);
        return _mm256_add_epi32(_mm256_min_epi32(_mm256_max_epi32(shifted, low), high), zero);
      });
}

SMELT_AVX2 void MultiplyAvx2(const Operand& a, const Operand& b, const ExactInt8Scales& scales,
                             int8_t* y, int64_t n) {
  const __m256i first = _mm256_set1_epi32(a.zero), second = _mm256_set1_epi32(b.zero);
  const Scales8 of_product = MakeScales8(_mm256_set1_ps(scales.scale[0]), scales);
  ForBoth8(
      a, b, y, n, [=](__m256i p, __m256i q) SMELT_AVX2 __attribute__((always_inline)) {
        return Scale8(_mm256_mullo_epi32(_mm256_sub_epi32(p, first), _mm256_sub_epi32(q, second)),
                      of_product);
      });
}

// ---- AVX-512

SMELT_AVX512_INLINE __m512i Wide16(const Operand& o, int64_t at, __mmask16 mask) {
  return _mm512_cvtepi8_epi32(o.step == 0 ? _mm_set1_epi8(*o.x)
                                          : _mm_maskz_loadu_epi8(mask, o.x + at));
}
SMELT_AVX512_INLINE __mmask16 LaneMask(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : (1 << n) - 1);
}

SMELT_AVX512 void AddAvx512(const Operand& a, const Operand& b, const ExactInt8Sum& sum, int8_t* y,
                            int64_t n) {
  const __m512i first = _mm512_set1_epi32(a.times), second = _mm512_set1_epi32(b.times);
  const __m512i offset = _mm512_set1_epi32(sum.offset), zero = _mm512_set1_epi32(sum.zero);
  const __m512i low = _mm512_set1_epi32(sum.low - sum.zero);
  const __m512i high = _mm512_set1_epi32(sum.high - sum.zero);
  const __m128i right = _mm_cvtsi32_si128(sum.right);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = LaneMask(n - i);
    const __m512i p = _mm512_mullo_epi32(Wide16(a, i, mask), first);
    const __m512i q = _mm512_mullo_epi32(Wide16(b, i, mask), second);
    const __m512i t = _mm512_sra_epi32(_mm512_add_epi32(_mm512_add_epi32(offset, p), q), right);
    const __m512i within = _mm512_min_epi32(_mm512_max_epi32(t, low), high);
    _mm_mask_storeu_epi8(y + i, mask, _mm512_cvtepi32_epi8(_mm512_add_epi32(within, zero)));
  }
}

SMELT_AVX512 void MultiplyAvx512(const Operand& a, const Operand& b, const ExactInt8Scales& scales,
                                 int8_t* y, int64_t n) {
  const __m512i first = _mm512_set1_epi32(a.zero), second = _mm512_set1_epi32(b.zero);
  const Scales16 of_product = MakeScales16(_mm512_set1_ps(scales.scale[0]), scales);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = LaneMask(n - i);
    const __m512i product = _mm512_mullo_epi32(_mm512_sub_epi32(Wide16(a, i, mask), first),
                                               _mm512_sub_epi32(Wide16(b, i, mask), second));
    _mm_mask_storeu_epi8(y + i, mask, Finish16(product, of_product));
  }
}

}  // namespace

void FillExactInt8Pairs(ExactInt8Loops& t, bool avx512) {
  t.add = avx512 ? AddAvx512 : AddAvx2;
  t.multiply = avx512 ? MultiplyAvx512 : MultiplyAvx2;
}

}  // namespace smelt
