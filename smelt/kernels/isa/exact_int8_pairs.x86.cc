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

// Is all that becomes of the operand's numbers a shift that loses nothing? As it is of the one with
// the larger scale in files that TensorFlow Lite runs.
bool IsShift(const Operand& o, int shift) {
  return o.fraction == 1 << 30 && o.left == 0 && shift > o.right;
}

// An operand's numbers less its zero point, and scaled.
struct Terms8 {
  __m256i zero;
  Factors8 factors;
  __m128i back;  // where they are shifted
  SMELT_AVX2_INLINE static Terms8 Of(const Operand& o) {
    return {_mm256_set1_epi32(o.zero),
            MakeFactors8(_mm256_set1_epi32(o.fraction), _mm256_set1_epi32(o.left),
                         _mm256_set1_epi32(o.right)),
            _mm_cvtsi32_si128(o.right + 1)};
  }
};
SMELT_AVX2_INLINE __m256i Less8(__m128i x, __m256i zero) {
  return _mm256_sub_epi32(_mm256_cvtepi8_epi32(x), zero);
}
// What becomes of 16 sums.
template <bool kPlain>
struct Finish8 {
  Factors8 factors;
  Bounds8 bounds;
  SMELT_AVX2_INLINE explicit Finish8(const ExactInt8Steps& s)
      : factors(MakeFactors8(_mm256_set1_epi32(s.fraction[0]), _mm256_set1_epi32(s.left[0]),
                             _mm256_set1_epi32(s.right[0]))),
        bounds(MakeBounds8(s)) {}
  SMELT_AVX2_INLINE __m128i operator()(__m256i first, __m256i second) const {
    const __m256i a = Scale8<true>(first, factors), b = Scale8<true>(second, factors);
    return Narrow16(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31),
                    bounds);
  }
};
template <>
struct Finish8<true> {
  Plain8 factors;
  SMELT_AVX2_INLINE explicit Finish8(const ExactInt8Steps& s)
      : factors(MakePlain8(_mm256_set1_epi32(s.fraction[0]), _mm256_set1_epi32(s.right[0]), s)) {}
  SMELT_AVX2_INLINE __m128i operator()(__m256i first, __m256i second) const {
    const __m256i a = ScalePlain8(first, factors), b = ScalePlain8(second, factors);
    return NarrowPlain16(_mm256_permute2x128_si256(a, b, 0x20),
                         _mm256_permute2x128_si256(a, b, 0x31), factors);
  }
};

template <bool kShiftA, bool kShiftB>
struct Sum8 {
  Terms8 a, b;
  __m128i shift;
  __m256i sign;
  template <bool kShift>
  SMELT_AVX2_INLINE __m256i Term(__m128i x, const Terms8& t) const {
    const __m256i shifted = _mm256_sll_epi32(Less8(x, t.zero), shift);
    return kShift ? _mm256_sra_epi32(shifted, t.back) : Scale8<true>(shifted, t.factors);
  }
  SMELT_AVX2_INLINE __m256i operator()(__m128i x, __m128i y) const {
    return _mm256_add_epi32(Term<kShiftA>(x, a), _mm256_sign_epi32(Term<kShiftB>(y, b), sign));
  }
};

template <bool kShiftA, bool kShiftB, bool kPlain>
SMELT_AVX2 void AddAvx2(const Operand& a, const Operand& b, int32_t sign, int shift,
                        const ExactInt8Steps& steps, int8_t* y, int64_t n) {
  const Sum8<kShiftA, kShiftB> sum{Terms8::Of(a), Terms8::Of(b), _mm_cvtsi32_si128(shift),
                                   _mm256_set1_epi32(sign)};
  const Finish8<kPlain> finish(steps);
  for (int64_t i = 0; i < n; i += 16) {
    const __m128i p = Load16(a, i, n - i), q = Load16(b, i, n - i);
    const __m256i front = sum(p, q), back = sum(_mm_srli_si128(p, 8), _mm_srli_si128(q, 8));
    StorePart(y + i, finish(front, back), n - i);
  }
}

template <bool kPlain>
SMELT_AVX2 void MultiplyAvx2(const Operand& a, const Operand& b, const ExactInt8Steps& steps,
                             int8_t* y, int64_t n) {
  const __m256i zero_a = _mm256_set1_epi32(a.zero), zero_b = _mm256_set1_epi32(b.zero);
  const Finish8<kPlain> finish(steps);
  for (int64_t i = 0; i < n; i += 16) {
    const __m128i p = Load16(a, i, n - i), q = Load16(b, i, n - i);
    const __m256i front = _mm256_mullo_epi32(Less8(p, zero_a), Less8(q, zero_b));
    const __m256i back = _mm256_mullo_epi32(Less8(_mm_srli_si128(p, 8), zero_a),
                                            Less8(_mm_srli_si128(q, 8), zero_b));
    StorePart(y + i, finish(front, back), n - i);
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

template <bool kPlain>
struct Finish16 {
  Factors16 factors;
  Bounds16 bounds;
  SMELT_AVX512_INLINE explicit Finish16(const ExactInt8Steps& s)
      : factors(SameFactors16(s.fraction[0], s.left[0], s.right[0])), bounds(MakeBounds16(s)) {}
  SMELT_AVX512_INLINE __m128i operator()(__m512i sum) const {
    return NarrowTo8(Scale16(sum, factors), bounds);
  }
};
template <>
struct Finish16<true> {
  Plain16 factors;
  SMELT_AVX512_INLINE explicit Finish16(const ExactInt8Steps& s)
      : factors(MakePlain16(_mm512_set1_epi32(s.fraction[0]), _mm512_set1_epi32(s.right[0]), s)) {}
  SMELT_AVX512_INLINE __m128i operator()(__m512i sum) const { return FinishPlain16(sum, factors); }
};

struct Terms16 {
  __m512i zero;
  Factors16 factors;
  __m128i up, back;
  SMELT_AVX512_INLINE static Terms16 Of(const Operand& o, int shift) {
    return {_mm512_set1_epi32(o.zero), SameFactors16(o.fraction, o.left, o.right),
            _mm_cvtsi32_si128(shift), _mm_cvtsi32_si128(o.right + 1)};
  }
  template <bool kShift>
  SMELT_AVX512_INLINE __m512i Of(__m128i x) const {
    const __m512i shifted = _mm512_sll_epi32(Less16(x, zero), up);
    return kShift ? _mm512_sra_epi32(shifted, back) : Scale16(shifted, factors);
  }
};

template <bool kShiftA, bool kShiftB, bool kPlain>
SMELT_AVX512 void AddAvx512(const Operand& a, const Operand& b, int32_t sign, int shift,
                            const ExactInt8Steps& steps, int8_t* y, int64_t n) {
  const Terms16 of_a = Terms16::Of(a, shift), of_b = Terms16::Of(b, shift);
  const Finish16<kPlain> finish(steps);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = MaskOf(n - i);
    const __m512i p = of_a.Of<kShiftA>(Load16Masked(a, i, mask));
    const __m512i q = of_b.Of<kShiftB>(Load16Masked(b, i, mask));
    const __m512i sum = sign < 0 ? _mm512_sub_epi32(p, q) : _mm512_add_epi32(p, q);
    _mm_mask_storeu_epi8(y + i, mask, finish(sum));
  }
}

template <bool kPlain>
SMELT_AVX512 void MultiplyAvx512(const Operand& a, const Operand& b, const ExactInt8Steps& steps,
                                 int8_t* y, int64_t n) {
  const __m512i zero_a = _mm512_set1_epi32(a.zero), zero_b = _mm512_set1_epi32(b.zero);
  const Finish16<kPlain> finish(steps);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = MaskOf(n - i);
    const __m512i product = _mm512_mullo_epi32(Less16(Load16Masked(a, i, mask), zero_a),
                                               Less16(Load16Masked(b, i, mask), zero_b));
    _mm_mask_storeu_epi8(y + i, mask, finish(product));
  }
}

using AddFn = void (*)(const Operand& a, const Operand& b, int32_t sign, int shift,
                       const ExactInt8Steps& steps, int8_t* y, int64_t n);
// By whether the steps are plain, and each operand is shifted.
#define SMELT_ADDS(Add)                                                          \
  {                                                                              \
    Add<false, false, false>, Add<false, true, false>, Add<true, false, false>,  \
        Add<true, true, false>, Add<false, false, true>, Add<false, true, true>, \
        Add<true, false, true>, Add<true, true, true>                            \
  }
constexpr AddFn kAddsAvx2[] = SMELT_ADDS(AddAvx2);
constexpr AddFn kAddsAvx512[] = SMELT_ADDS(AddAvx512);
#undef SMELT_ADDS
template <const AddFn (&kAdds)[8]>
void Add(const Operand& a, const Operand& b, int32_t sign, int shift, const ExactInt8Steps& steps,
         int8_t* y, int64_t n) {
  const int way = (steps.plain ? 4 : 0) + (IsShift(a, shift) ? 2 : 0) + (IsShift(b, shift) ? 1 : 0);
  kAdds[way](a, b, sign, shift, steps, y, n);
}

using MultiplyFn = void (*)(const Operand& a, const Operand& b, const ExactInt8Steps& steps,
                            int8_t* y, int64_t n);
template <MultiplyFn kAny, MultiplyFn kPlain>
void Multiply(const Operand& a, const Operand& b, const ExactInt8Steps& steps, int8_t* y,
              int64_t n) {
  (steps.plain ? kPlain : kAny)(a, b, steps, y, n);
}

}  // namespace

void FillExactInt8Pairs(ExactInt8Loops& t, bool avx512) {
  t.add = avx512 ? Add<kAddsAvx512> : Add<kAddsAvx2>;
  t.multiply = avx512 ? Multiply<MultiplyAvx512<false>, MultiplyAvx512<true>>
                      : Multiply<MultiplyAvx2<false>, MultiplyAvx2<true>>;
}

}  // namespace smelt
