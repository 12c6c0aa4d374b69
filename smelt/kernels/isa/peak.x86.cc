#include "smelt/kernels/isa/peak.h"

#include <immintrin.h>

#include "smelt/base/processor.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/tile_division.x86.h"

namespace smelt {
namespace {

// Twelve sums that do not wait for each other fill two units of four or five cycles.
#define SMELT_TWELVE(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
constexpr int64_t kSums = 12;

// What loops compute has to go somewhere.
void Consume(const void* p) { asm volatile("" : : "r"(p) : "memory"); }

// SETUP: values a and b of type V. STEP(s): s after one more step.
#define SMELT_PEAK_LOOP(NAME, TARGET, V, KIND, SETUP, STEP)   \
  __attribute__((target(TARGET))) void NAME(int64_t passes) { \
    SETUP;                                                    \
    V s[kSums];                                               \
    SMELT_TWELVE(SMELT_PEAK_START_##KIND)                     \
    for (int64_t i = 0; i < passes; ++i) {                    \
      SMELT_TWELVE(STEP)                                      \
    }                                                         \
    SMELT_TWELVE(SMELT_PEAK_STORE)                            \
    Consume(s);                                               \
  }
#define SMELT_PEAK_STORE(i) s[i] = s##i;
#define SMELT_PEAK_START_SSE(i) __m128 s##i = _mm_set1_ps(i);
#define SMELT_PEAK_START_AVX(i) __m256 s##i = _mm256_set1_ps(i);
#define SMELT_PEAK_START_AVX512(i) __m512 s##i = _mm512_set1_ps(i);
#define SMELT_PEAK_START_INTS(i) __m512i s##i = _mm512_set1_epi32(i);
// Sums that begin apart are not one to the compiler; those of floats end near 1.
#define SMELT_PEAK_SSE(i) s##i = _mm_add_ps(_mm_mul_ps(s##i, a), b);
#define SMELT_PEAK_FMA(i) s##i = _mm256_fmadd_ps(s##i, a, b);
#define SMELT_PEAK_FMA512(i) s##i = _mm512_fmadd_ps(s##i, a, b);
#define SMELT_PEAK_DOT8(i) s##i = _mm512_dpbusd_epi32(s##i, a, b);
#define SMELT_PEAK_DOT16(i) s##i = _mm512_dpbf16_ps(s##i, a, a);

SMELT_PEAK_LOOP(PeakSse, "sse2", __m128, SSE, const __m128 a = _mm_set1_ps(0.5f);
                const __m128 b = _mm_set1_ps(0.5f), SMELT_PEAK_SSE)
SMELT_PEAK_LOOP(PeakFma, "avx2,fma", __m256, AVX, const __m256 a = _mm256_set1_ps(0.5f);
                const __m256 b = _mm256_set1_ps(0.5f), SMELT_PEAK_FMA)
SMELT_PEAK_LOOP(PeakFma512, "avx512f", __m512, AVX512, const __m512 a = _mm512_set1_ps(0.5f);
                const __m512 b = _mm512_set1_ps(0.5f), SMELT_PEAK_FMA512)
SMELT_PEAK_LOOP(PeakDot8, "avx512f,avx512vnni", __m512i, INTS,
                const __m512i a = _mm512_set1_epi32(0x01010101);
                const __m512i b = a, SMELT_PEAK_DOT8)
SMELT_PEAK_LOOP(PeakDot16, "avx512f,avx512bw,avx512vl,avx512bf16", __m512, AVX512,
                const __m512bh a = (__m512bh)_mm512_setzero_si512(), SMELT_PEAK_DOT16)

// Products of two pairs of tiles into four sums: none waits for the one before.
#define SMELT_PEAK_TILES(NAME, TARGET, DOT)                              \
  __attribute__((target("amx-tile," TARGET))) void NAME(int64_t times) { \
    _tile_loadconfig(&kMatrixDivision);                                  \
    SMELT_PEAK_ZEROS;                                                    \
    for (int64_t i = 0; i < times; ++i) {                                \
      DOT(0, 4, 6);                                                      \
      DOT(1, 4, 7);                                                      \
      DOT(2, 5, 6);                                                      \
      DOT(3, 5, 7);                                                      \
    }                                                                    \
    _tile_release();                                                     \
  }
#define SMELT_PEAK_ZEROS \
  _tile_zero(0);         \
  _tile_zero(1);         \
  _tile_zero(2);         \
  _tile_zero(3);         \
  _tile_zero(4);         \
  _tile_zero(5);         \
  _tile_zero(6);         \
  _tile_zero(7)
SMELT_PEAK_TILES(PeakTiles8, "amx-int8", _tile_dpbusd)
SMELT_PEAK_TILES(PeakTiles16, "amx-bf16", _tile_dpbf16ps)
// Products of tiles for each pass, and the sums of each.
constexpr int64_t kTilesOfPass = 4, kTileSums = kMatrixTileSide * kMatrixTileSide;

__attribute__((target("avx512f"))) uint64_t ReadWide(const char* p, const char* end) {
  __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
  for (; p < end; p += 512) {
    const auto* v = reinterpret_cast<const __m512i*>(p);
    s0 = _mm512_or_si512(s0, _mm512_or_si512(v[0], v[4]));
    s1 = _mm512_or_si512(s1, _mm512_or_si512(v[1], v[5]));
    s2 = _mm512_or_si512(s2, _mm512_or_si512(v[2], v[6]));
    s3 = _mm512_or_si512(s3, _mm512_or_si512(v[3], v[7]));
  }
  alignas(64) uint64_t words[8];
  _mm512_store_si512(words, _mm512_or_si512(_mm512_or_si512(s0, s1), _mm512_or_si512(s2, s3)));
  uint64_t all = 0;
  for (const uint64_t w : words) all |= w;
  return all;
}

__attribute__((target("avx2"))) uint64_t ReadHalf(const char* p, const char* end) {
  __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;
  for (; p < end; p += 256) {
    const auto* v = reinterpret_cast<const __m256i*>(p);
    s0 = _mm256_or_si256(s0, _mm256_or_si256(v[0], v[4]));
    s1 = _mm256_or_si256(s1, _mm256_or_si256(v[1], v[5]));
    s2 = _mm256_or_si256(s2, _mm256_or_si256(v[2], v[6]));
    s3 = _mm256_or_si256(s3, _mm256_or_si256(v[3], v[7]));
  }
  alignas(32) uint64_t words[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(words),
                     _mm256_or_si256(_mm256_or_si256(s0, s1), _mm256_or_si256(s2, s3)));
  return words[0] | words[1] | words[2] | words[3];
}

uint64_t ReadNarrow(const char* p, const char* end) {
  __m128i s0 = _mm_setzero_si128(), s1 = s0, s2 = s0, s3 = s0;
  for (; p < end; p += 64) {
    const auto* v = reinterpret_cast<const __m128i*>(p);
    s0 = _mm_or_si128(s0, v[0]);
    s1 = _mm_or_si128(s1, v[1]);
    s2 = _mm_or_si128(s2, v[2]);
    s3 = _mm_or_si128(s3, v[3]);
  }
  alignas(16) uint64_t words[2];
  _mm_store_si128(reinterpret_cast<__m128i*>(words),
                  _mm_or_si128(_mm_or_si128(s0, s1), _mm_or_si128(s2, s3)));
  return words[0] | words[1];
}

}  // namespace

int64_t RunPeak(PeakOp op, int64_t passes) {
  const IsaLevel level = Isa().level;
  const int64_t steps = passes * kSums;
  if (op == PeakOp::kInt8) {
    if (level != IsaLevel::kAvx512 || !CpuHas(CpuFeature::kDotBytes)) return 0;
    if (CpuHas(CpuFeature::kTilesOfBytes)) {
      PeakTiles8(passes);
      return passes * kTilesOfPass * kTileSums * kMatrixTileBytes * 2;
    }
    PeakDot8(passes);
    return steps * 64 * 2;
  }
  if (op == PeakOp::kBfloat16) {
    if (level != IsaLevel::kAvx512 || !CpuHas(CpuFeature::kDotBfloat16)) return 0;
    if (CpuHas(CpuFeature::kTilesOfBfloat16)) {
      PeakTiles16(passes);
      return passes * kTilesOfPass * kTileSums * (kMatrixTileBytes / 2) * 2;
    }
    PeakDot16(passes);
    return steps * 32 * 2;
  }
  switch (level) {
    case IsaLevel::kBaseline:
      PeakSse(passes);
      return steps * 4 * 2;
    case IsaLevel::kAvx2:
      PeakFma(passes);
      return steps * 8 * 2;
    case IsaLevel::kAvx512:
      PeakFma512(passes);
      return steps * 16 * 2;
  }
  return 0;
}

uint64_t ReadAll(const void* p, int64_t bytes) {
  const auto* begin = static_cast<const char*>(p);
  switch (Isa().level) {
    case IsaLevel::kAvx512:
      return ReadWide(begin, begin + bytes);
    case IsaLevel::kAvx2:
      return ReadHalf(begin, begin + bytes);
    case IsaLevel::kBaseline:
      break;
  }
  return ReadNarrow(begin, begin + bytes);
}

}  // namespace smelt
