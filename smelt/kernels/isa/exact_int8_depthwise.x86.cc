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

struct VnniSteps {
  Factors16 factors;
  Bounds16 bounds;
  Plain16 plain;
  __mmask16 mask;
};

// Results [from, from + N) side by side.
template <SumsWay kWay, int N>
SMELT_VNNI_INLINE void VnniResults(const ExactInt8Depthwise& run, int64_t from,
                                   const VnniSteps& steps) {
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
    if (kWay == SumsWay::kStay) {
      _mm512_storeu_si512(run.sums + (from + i) * kExactDepthwiseBlock, sum[i]);
    } else {
      _mm_mask_storeu_epi8(run.y + (from + i) * run.y_step, steps.mask,
                           kWay == SumsWay::kPlain
                               ? FinishPlain16(sum[i], steps.plain)
                               : NarrowTo8(Scale16(sum[i], steps.factors), steps.bounds));
    }
  }
}

template <SumsWay kWay>
SMELT_AVX512_VNNI void VnniDepthwise(const ExactInt8Depthwise& run) {
  VnniSteps steps = {};
  if (kWay == SumsWay::kPlain) {
    steps.plain = LoadPlain16(run.steps, 0);
  } else if (kWay == SumsWay::kAny) {
    steps.factors = LoadFactors16(run.steps, 0);
    steps.bounds = MakeBounds16(run.steps);
  }
  steps.mask = static_cast<__mmask16>(run.channels >= 16 ? 0xffff : (1 << run.channels) - 1);
  int64_t i = 0;
  for (; i + 4 <= run.results; i += 4) VnniResults<kWay, 4>(run, i, steps);
  for (; i < run.results; ++i) VnniResults<kWay, 1>(run, i, steps);
}

void VnniDepthwiseAny(const ExactInt8Depthwise& run) {
  if (run.sums != nullptr) {
    VnniDepthwise<SumsWay::kStay>(run);
  } else if (run.steps.plain) {
    VnniDepthwise<SumsWay::kPlain>(run);
  } else {
    VnniDepthwise<SumsWay::kAny>(run);
  }
}

}  // namespace

void FillExactInt8Depthwise(ExactInt8Loops& t) {
  t.depthwise_places = kPlaces;
  t.depthwise = VnniDepthwiseAny;
  t.depthwise_of_block = nullptr;  // AVX2's wants another order
}

}  // namespace smelt
