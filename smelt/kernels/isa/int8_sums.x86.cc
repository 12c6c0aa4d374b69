#include "smelt/kernels/isa/int8_sums.x86.h"

#include <algorithm>

#include "smelt/kernels/isa/isa.h"

namespace smelt {
namespace {

SMELT_SUMS_INLINE __m256 LoadAsFloats(const int32_t* p) {
  return _mm256_cvtepi32_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
SMELT_SUMS_INLINE __m256 LoadAsFloats(const float* p) { return _mm256_loadu_ps(p); }

template <bool kAdds, typename T>
SMELT_SUMS_INLINE void BlockToInt8(const Int8SumBlock& b, const T* sums) {
  for (int64_t at = 0; at < b.columns; at += kInt8SumLanes) {
    const int64_t n = std::min(kInt8SumLanes, b.columns - at), width = b.width;
    const SumsToBytes<kAdds> end(b, at);
    const T* from = sums + at;
    for (int64_t r = 0; r < b.rows; ++r, from += width) {
      end.Store(b, r, at, n, LoadAsFloats(from), LoadAsFloats(from + 8));
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

SMELT_SUMS void AddFloats(const Int8SumBlock& b, const float* x, int64_t x_step, float* v) {
  for (int64_t r = 0; r < b.rows; ++r, x += x_step, v += b.width) {
    int64_t c = 0;
    for (; c + 8 <= b.columns; c += 8) {
      _mm256_storeu_ps(v + c, _mm256_add_ps(_mm256_loadu_ps(v + c), _mm256_loadu_ps(x + c)));
    }
    for (; c < b.columns; ++c) v[c] += x[c];
  }
}

}  // namespace

const Int8SumLoops* PairSumLoops() {
  static constexpr Int8SumLoops kLoops = {SumsToInt8, FloatsToInt8, SumsToFloats, AddInt8ToFloats,
                                          AddFloats};
  return Isa().level == IsaLevel::kBaseline ? nullptr : &kLoops;
}

}  // namespace smelt
