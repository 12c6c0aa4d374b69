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

// An operand's numbers less its zero point, and scaled.
struct Terms8 {
  __m256i zero;
  Factors8 factors;
  SMELT_AVX2_INLINE static Terms8 Of(const Operand& o) {
    return {_mm256_set1_epi32(o.zero),
            MakeFactors8(_mm256_set1_epi32(o.fraction), _mm256_set1_epi32(o.left),
                         _mm256_set1_epi32(o.right))};
  }
};
SMELT_AVX2_INLINE __m256i Less8(__m128i x, __m256i zero) {
  return _mm256_sub_epi32(_mm256_cvtepi8_epi32(x), zero);
}
SMELT_AVX2_INLINE Factors8 FactorsOf8(const ExactInt8Steps& s) {
  return MakeFactors8(_mm256_set1_epi32(s.fraction[0]), _mm256_set1_epi32(s.left[0]),
                      _mm256_set1_epi32(s.right[0]));
}

SMELT_AVX2_INLINE __m128i Finish8(__m256i first, __m256i second, const Factors8& f,
                                  const ExactInt8Steps& s) {
  const __m256i a = Scale8<true>(first, f), b = Scale8<true>(second, f);
  return Narrow16(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31), s);
}

struct Sum8 {
  Terms8 a, b;
  __m128i shift;
  __m256i sign;
  SMELT_AVX2_INLINE __m256i Term(__m128i x, const Terms8& t) const {
    return Scale8<true>(_mm256_sll_epi32(Less8(x, t.zero), shift), t.factors);
  }
  SMELT_AVX2_INLINE __m256i operator()(__m128i x, __m128i y) const {
    return _mm256_add_epi32(Term(x, a), _mm256_sign_epi32(Term(y, b), sign));
  }
};

SMELT_AVX2 void AddAvx2(const Operand& a, const Operand& b, int32_t sign, int shift,
                        const ExactInt8Steps& steps, int8_t* y, int64_t n) {
  const Sum8 sum{Terms8::Of(a), Terms8::Of(b), _mm_cvtsi32_si128(shift), _mm256_set1_epi32(sign)};
  const Factors8 f = FactorsOf8(steps);
  for (int64_t i = 0; i < n; i += 16) {
    const __m128i p = Load16(a, i, n - i), q = Load16(b, i, n - i);
    const __m256i front = sum(p, q), back = sum(_mm_srli_si128(p, 8), _mm_srli_si128(q, 8));
    StorePart(y + i, Finish8(front, back, f, steps), n - i);
  }
}

SMELT_AVX2 void MultiplyAvx2(const Operand& a, const Operand& b, const ExactInt8Steps& steps,
                             int8_t* y, int64_t n) {
  const __m256i zero_a = _mm256_set1_epi32(a.zero), zero_b = _mm256_set1_epi32(b.zero);
  const Factors8 f = FactorsOf8(steps);
  for (int64_t i = 0; i < n; i += 16) {
    const __m128i p = Load16(a, i, n - i), q = Load16(b, i, n - i);
    const __m256i front = _mm256_mullo_epi32(Less8(p, zero_a), Less8(q, zero_b));
    const __m256i back = _mm256_mullo_epi32(Less8(_mm_srli_si128(p, 8), zero_a),
                                            Less8(_mm_srli_si128(q, 8), zero_b));
    StorePart(y + i, Finish8(front, back, f, steps), n - i);
  }
}

// ---- AVX-512

SMELT_AVX512_INLINE Factors16 SameFactors16(int32_t fraction, int32_t left, int32_t right) {
  return MakeFactors16(_mm512_set1_epi32(fraction), _mm512_set1_epi32(left),
                       _mm512_set1_epi32(right));
}
SMELT_AVX512_INLINE __m128i Load16Masked(const Operand& o, int64_t at, __mmask16 mask) {
  return o.step == 0 ? _mm_set1_epi8(*o.x) : _mm_maskz_loadu_epi8(mask, o.x + at);
}
SMELT_AVX512_INLINE __m512i Less16(__m128i x, __m512i zero) {
  return _mm512_sub_epi32(_mm512_cvtepi8_epi32(x), zero);
}
SMELT_AVX512_INLINE __mmask16 MaskOf(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : (1 << n) - 1);
}

SMELT_AVX512 void AddAvx512(const Operand& a, const Operand& b, int32_t sign, int shift,
                            const ExactInt8Steps& steps, int8_t* y, int64_t n) {
  const __m512i zero_a = _mm512_set1_epi32(a.zero), zero_b = _mm512_set1_epi32(b.zero);
  const Factors16 of_a = SameFactors16(a.fraction, a.left, a.right);
  const Factors16 of_b = SameFactors16(b.fraction, b.left, b.right);
  const Factors16 f = SameFactors16(steps.fraction[0], steps.left[0], steps.right[0]);
  const __m128i up = _mm_cvtsi32_si128(shift);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = MaskOf(n - i);
    const __m512i p = Scale16(_mm512_sll_epi32(Less16(Load16Masked(a, i, mask), zero_a), up), of_a);
    const __m512i q = Scale16(_mm512_sll_epi32(Less16(Load16Masked(b, i, mask), zero_b), up), of_b);
    const __m512i sum = sign < 0 ? _mm512_sub_epi32(p, q) : _mm512_add_epi32(p, q);
    _mm_mask_storeu_epi8(y + i, mask, NarrowTo8(Scale16(sum, f), steps));
  }
}

SMELT_AVX512 void MultiplyAvx512(const Operand& a, const Operand& b, const ExactInt8Steps& steps,
                                 int8_t* y, int64_t n) {
  const __m512i zero_a = _mm512_set1_epi32(a.zero), zero_b = _mm512_set1_epi32(b.zero);
  const Factors16 f = SameFactors16(steps.fraction[0], steps.left[0], steps.right[0]);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = MaskOf(n - i);
    const __m512i product = _mm512_mullo_epi32(Less16(Load16Masked(a, i, mask), zero_a),
                                               Less16(Load16Masked(b, i, mask), zero_b));
    _mm_mask_storeu_epi8(y + i, mask, NarrowTo8(Scale16(product, f), steps));
  }
}

}  // namespace

void FillExactInt8Pairs(ExactInt8Loops& t, bool avx512) {
  t.add = avx512 ? AddAvx512 : AddAvx2;
  t.multiply = avx512 ? MultiplyAvx512 : MultiplyAvx2;
}

}  // namespace smelt
