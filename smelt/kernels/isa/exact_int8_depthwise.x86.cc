// Depthwise layers by AVX512-VNNI: 16 channels of two taps at once.
#include "smelt/kernels/isa/exact_int8.x86.h"
#include "smelt/kernels/isa/unroll.h"

namespace smelt {
namespace {

#define SMELT_VNNI_INLINE SMELT_AVX512_VNNI __attribute__((always_inline)) inline

constexpr uint8_t kPlaces[kExactDepthwiseBlock] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                   8, 9, 10, 11, 12, 13, 14, 15};

SMELT_VNNI_INLINE __m512i Load16Words(const int16_t* x) { return _mm512_castsi256_si512(Load8(x)); }

// A number of the first tap, one of the second, and so on.
SMELT_VNNI_INLINE __m512i Woven(const int16_t* a, const int16_t* b) {
  const __m512i weave = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                         8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  return _mm512_permutex2var_epi16(Load16Words(a), weave, Load16Words(b));
}

// Results [from, from + N) side by side, or their sums.
template <bool kSums, int N>
SMELT_VNNI_INLINE void VnniResults(const ExactInt8Depthwise& run, int64_t from,
                                   const Scales16& scales, __mmask16 mask) {
  __m512i sum[N];
  const __m512i start = _mm512_loadu_si512(run.start);
  SMELT_UNROLL for (int i = 0; i < N; ++i) sum[i] = start;
  const int16_t* x = run.x + from * run.x_step;
  const int16_t* w = run.weights;
  for (int64_t t = 0; t < 2 * run.pairs; t += 2, w += 2 * kExactDepthwiseBlock) {
    const int16_t *first = x + run.taps[t], *second = x + run.taps[t + 1];
    const __m512i two = _mm512_loadu_si512(w);
    SMELT_UNROLL for (int i = 0; i < N; ++i) {
      sum[i] =
          _mm512_dpwssd_epi32(sum[i], Woven(first + i * run.x_step, second + i * run.x_step), two);
    }
  }
  SMELT_UNROLL for (int i = 0; i < N; ++i) {
    if (kSums) {
      _mm512_storeu_si512(run.sums + (from + i) * kExactDepthwiseBlock, sum[i]);
    } else {
      _mm_mask_storeu_epi8(run.y + (from + i) * run.y_step, mask, Finish16(sum[i], scales));
    }
  }
}

template <bool kSums>
SMELT_AVX512_VNNI void VnniDepthwise(const ExactInt8Depthwise& run) {
  Scales16 scales = {};
  if (!kSums) scales = LoadScales16(run.scales, 0);
  const auto mask = static_cast<__mmask16>(run.channels >= 16 ? 0xffff : (1 << run.channels) - 1);
  int64_t i = 0;
  for (; i + 4 <= run.results; i += 4) VnniResults<kSums, 4>(run, i, scales, mask);
  for (; i < run.results; ++i) VnniResults<kSums, 1>(run, i, scales, mask);
}

void VnniDepthwiseAny(const ExactInt8Depthwise& run) {
  run.sums != nullptr ? VnniDepthwise<true>(run) : VnniDepthwise<false>(run);
}

}  // namespace

void FillExactInt8Depthwise(ExactInt8Loops& t) {
  t.depthwise_places = kPlaces;
  t.depthwise = VnniDepthwiseAny;
  t.depthwise_of_block = nullptr;  // AVX2's wants another order
}

}  // namespace smelt
