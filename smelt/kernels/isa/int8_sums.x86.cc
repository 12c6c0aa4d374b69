#include "smelt/kernels/isa/int8_sums.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "smelt/kernels/isa/isa.h"

#define SMELT_SUMS __attribute__((target("avx2,fma")))
#define SMELT_SUMS_INLINE SMELT_SUMS __attribute__((always_inline)) inline

namespace smelt {
namespace {

SMELT_SUMS_INLINE __m256 LoadAsFloats(const int32_t* p) {
  return _mm256_cvtepi32_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
SMELT_SUMS_INLINE __m256 LoadAsFloats(const float* p) { return _mm256_loadu_ps(p); }

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

// What the block says of the operand that is added.
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

template <bool kAdds, typename T>
SMELT_SUMS_INLINE void BlockToInt8(const Int8SumBlock& b, const T* sums) {
  const __m256 zero = _mm256_set1_ps(b.zero), low = _mm256_set1_ps(b.low);
  const __m256 high = _mm256_set1_ps(b.high);
  const __m128i flip = _mm_set1_epi8(static_cast<char>(b.flip));
  const AddedInt8 added(b);
  for (int64_t at = 0; at < b.columns; at += kInt8SumLanes) {
    const int64_t n = std::min(kInt8SumLanes, b.columns - at), width = b.width;
    const __m256 scale0 = _mm256_loadu_ps(b.scales + at);
    const __m256 scale1 = _mm256_loadu_ps(b.scales + at + 8);
    const T* from = sums + at;
    for (int64_t r = 0; r < b.rows; ++r, from += width) {
      __m256 v0 = _mm256_fmadd_ps(LoadAsFloats(from), scale0, zero);
      __m256 v1 = _mm256_fmadd_ps(LoadAsFloats(from + 8), scale1, zero);
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
  }
}

SMELT_SUMS void SumsToInt8(const Int8SumBlock& block, const int32_t* sums) {
  if (block.addend != nullptr) return BlockToInt8<true>(block, sums);
  BlockToInt8<false>(block, sums);
}

SMELT_SUMS void FloatsToInt8(const Int8SumBlock& block, const float* x) {
  if (block.addend != nullptr) return BlockToInt8<true>(block, x);
  BlockToInt8<false>(block, x);
}

SMELT_SUMS void SumsToFloats(const Int8SumBlock& b, const int32_t* sums, float* v) {
  for (int64_t r = 0; r < b.rows; ++r) {
    for (int64_t c = 0; c < b.width; c += 8, sums += 8, v += 8) {
      _mm256_storeu_ps(v, _mm256_mul_ps(LoadAsFloats(sums), _mm256_loadu_ps(b.scales + c)));
    }
  }
}

SMELT_SUMS void AddInt8ToFloats(const Int8SumBlock& b, float* v) {
  const AddedInt8 added(b);
  for (int64_t r = 0; r < b.rows; ++r, v += b.width) {
    for (int64_t at = 0; at < b.columns; at += kInt8SumLanes) {
      const __m128i x = _mm_xor_si128(
          LoadSumBytes(b.addend + r * b.addend_step + at, b.columns - at), added.flip);
      _mm256_storeu_ps(v + at, added.Add(x, _mm256_loadu_ps(v + at)));
      _mm256_storeu_ps(v + at + 8, added.Add(_mm_srli_si128(x, 8), _mm256_loadu_ps(v + at + 8)));
    }
  }
}

}  // namespace

const Int8SumLoops* PairSumLoops() {
  static constexpr Int8SumLoops kLoops = {SumsToInt8, FloatsToInt8, SumsToFloats, AddInt8ToFloats};
  return Isa().level == IsaLevel::kBaseline ? nullptr : &kLoops;
}

}  // namespace smelt
