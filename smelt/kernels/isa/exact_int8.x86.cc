#include "smelt/kernels/isa/exact_int8.h"

#include <immintrin.h>

#include <cstring>

#include "smelt/base/processor.h"
#include "smelt/kernels/isa/isa.h"

namespace smelt {
namespace {

// Sums stay in registers only where the loops over them are unrolled.
#if defined(__clang__)
#define SMELT_EXACT_UNROLL  // Clang unrolls them unasked.
#else
#define SMELT_EXACT_UNROLL _Pragma("GCC unroll 12")
#endif
#define SMELT_AVX2 __attribute__((target("avx2")))
#define SMELT_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define SMELT_AVX512_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define SMELT_AVX2_INLINE SMELT_AVX2 __attribute__((always_inline)) inline
#define SMELT_AVX512_INLINE SMELT_AVX512 __attribute__((always_inline)) inline

// ---- AVX2

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
SMELT_AVX2_INLINE Factors8 LoadFactors8(const ExactInt8Steps& s, int64_t at) {
  Factors8 f;
  f.fraction = Load8(s.fraction + at);
  f.odd_fraction = _mm256_srli_epi64(f.fraction, 32);
  f.left = Load8(s.left + at);
  f.right = Load8(s.right + at);
  const __m256i one = _mm256_set1_epi32(1);
  f.mask = _mm256_sub_epi32(_mm256_sllv_epi32(one, f.right), one);
  f.half = _mm256_srli_epi32(f.mask, 1);
  return f;
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

// 16 scaled sums as int8, in the order in which the halves of the registers hold them: lanes 0 to 3
// of a, 0 to 3 of b, 4 to 7 of a, 4 to 7 of b.
SMELT_AVX2_INLINE __m128i Narrow16(__m256i a, __m256i b, const ExactInt8Steps& s) {
  __m256i words = _mm256_packs_epi32(a, b);
  words = _mm256_adds_epi16(words, _mm256_set1_epi16(static_cast<int16_t>(s.zero)));
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  return _mm_min_epi8(_mm_max_epi8(bytes, _mm_set1_epi8(static_cast<int8_t>(s.low))),
                      _mm_set1_epi8(static_cast<int8_t>(s.high)));
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

SMELT_AVX2_INLINE __m256i Widened(const int8_t* p) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

template <bool kLeft, int P>
SMELT_AVX2_INLINE void FinishTile2(const ExactInt8Tile& tile, const __m256i (&sum)[P][2]) {
  const Factors8 first = LoadFactors8(tile.steps, 0), second = LoadFactors8(tile.steps, 8);
  for (int p = 0; p < P; ++p) {
    const __m256i a = Scale8<kLeft>(sum[p][0], first), b = Scale8<kLeft>(sum[p][1], second);
    // Columns 0 to 3 and 8 to 11, then the others.
    const __m256i front = _mm256_permute2x128_si256(a, b, 0x20);
    const __m256i back = _mm256_permute2x128_si256(a, b, 0x31);
    StorePart(tile.y + p * tile.y_step, Narrow16(front, back, tile.steps), tile.columns);
  }
}

template <int P>
SMELT_AVX2 void TileAvx2(const ExactInt8Tile& tile) {
  __m256i sum[P][2];
  SMELT_EXACT_UNROLL for (int v = 0; v < 2; ++v) {
    const __m256i start = Load8(tile.start + v * 8);
    SMELT_EXACT_UNROLL for (int p = 0; p < P; ++p) sum[p][v] = start;
  }
  const int8_t* w = tile.weights;
  const int64_t bytes = tile.groups * 4;
  for (int64_t s = 0; s < tile.num_segments; ++s) {
    const char* x[P];
    SMELT_EXACT_UNROLL for (int p = 0; p < P; ++p) {
      x[p] = reinterpret_cast<const char*>(tile.rows[p] + tile.segments[s]);
    }
    for (int64_t at = 0; at < bytes; at += 4, w += 32) {
      const __m256i w0 = Widened(w), w1 = Widened(w + 16);
      SMELT_EXACT_UNROLL for (int p = 0; p < P; ++p) {
        const __m256i two =
            _mm256_broadcastd_epi32(_mm_loadu_si32(static_cast<const void*>(x[p] + at)));
        sum[p][0] = _mm256_add_epi32(sum[p][0], _mm256_madd_epi16(two, w0));
        sum[p][1] = _mm256_add_epi32(sum[p][1], _mm256_madd_epi16(two, w1));
      }
    }
  }
  if (tile.sums != nullptr) {
    SMELT_EXACT_UNROLL for (int p = 0; p < P; ++p) {
      Store8(tile.sums + p * 16, sum[p][0]);
      Store8(tile.sums + p * 16 + 8, sum[p][1]);
    }
  } else if (tile.steps.shifts_left) {
    FinishTile2<true, P>(tile, sum);
  } else {
    FinishTile2<false, P>(tile, sum);
  }
}

// One block of channels: results [from, from + N) side by side.
template <bool kLeft, bool kSums, int N>
SMELT_AVX2_INLINE void DepthwiseResults(const ExactInt8Depthwise& run, int64_t from,
                                        const Factors8& low, const Factors8& high) {
  __m256i sum[N][2];
  SMELT_EXACT_UNROLL for (int v = 0; v < 2; ++v) {
    const __m256i start = Load8(run.start + v * 8);
    SMELT_EXACT_UNROLL for (int i = 0; i < N; ++i) sum[i][v] = start;
  }
  const int16_t* x = run.x + from * run.x_step;
  const int16_t* w = run.weights;
  for (int64_t t = 0; t < 2 * run.pairs; t += 2, w += 32) {
    const int16_t *first = x + run.taps[t], *second = x + run.taps[t + 1];
    const __m256i w_low = Load8(w), w_high = Load8(w + 16);
    SMELT_EXACT_UNROLL for (int i = 0; i < N; ++i) {
      const __m256i a = Load8(first + i * run.x_step), b = Load8(second + i * run.x_step);
      sum[i][0] =
          _mm256_add_epi32(sum[i][0], _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w_low));
      sum[i][1] =
          _mm256_add_epi32(sum[i][1], _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w_high));
    }
  }
  SMELT_EXACT_UNROLL for (int i = 0; i < N; ++i) {
    if (kSums) {
      int32_t* to = run.sums + (from + i) * 16;
      Store8(to, _mm256_permute2x128_si256(sum[i][0], sum[i][1], 0x20));
      Store8(to + 8, _mm256_permute2x128_si256(sum[i][0], sum[i][1], 0x31));
      continue;
    }
    // Interleaving left lanes 0 to 3 and 8 to 11 in the first: narrowing sets them right.
    const __m128i bytes =
        Narrow16(Scale8<kLeft>(sum[i][0], low), Scale8<kLeft>(sum[i][1], high), run.steps);
    StorePart(run.y + (from + i) * run.y_step, bytes, run.channels);
  }
}

template <bool kLeft, bool kSums>
SMELT_AVX2 void DepthwiseAvx2(const ExactInt8Depthwise& run) {
  Factors8 low = {}, high = {};
  if (!kSums) low = LoadFactors8(run.steps, 0), high = LoadFactors8(run.steps, 8);
  int64_t i = 0;
  for (; i + 2 <= run.results; i += 2) DepthwiseResults<kLeft, kSums, 2>(run, i, low, high);
  if (i < run.results) DepthwiseResults<kLeft, kSums, 1>(run, i, low, high);
}

void DepthwiseAvx2Any(const ExactInt8Depthwise& run) {
  if (run.sums != nullptr) {
    DepthwiseAvx2<false, true>(run);
  } else if (run.steps.shifts_left) {
    DepthwiseAvx2<true, false>(run);
  } else {
    DepthwiseAvx2<false, false>(run);
  }
}

constexpr uint8_t kCrossedPlaces[kExactDepthwiseBlock] = {0, 1, 2, 3, 8,  9,  10, 11,
                                                          4, 5, 6, 7, 12, 13, 14, 15};

// ---- AVX-512: the same with registers twice as wide, and 32 of them.

struct Factors16 {
  __m512i fraction, odd_fraction, left, right, mask, half;
};
SMELT_AVX512_INLINE Factors16 LoadFactors16(const ExactInt8Steps& s, int64_t at) {
  Factors16 f;
  f.fraction = _mm512_loadu_si512(s.fraction + at);
  f.odd_fraction = _mm512_srli_epi64(f.fraction, 32);
  f.left = _mm512_loadu_si512(s.left + at);
  f.right = _mm512_loadu_si512(s.right + at);
  const __m512i one = _mm512_set1_epi32(1);
  f.mask = _mm512_sub_epi32(_mm512_sllv_epi32(one, f.right), one);
  f.half = _mm512_srli_epi32(f.mask, 1);
  return f;
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

SMELT_AVX512_INLINE __m128i Narrow(__m512i v, const ExactInt8Steps& s) {
  v = _mm512_max_epi32(v, _mm512_set1_epi32(s.low - s.zero));
  v = _mm512_min_epi32(v, _mm512_set1_epi32(s.high - s.zero));
  return _mm512_cvtepi32_epi8(_mm512_add_epi32(v, _mm512_set1_epi32(s.zero)));
}

SMELT_AVX512_INLINE __m512i Widened32(const int8_t* p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// sum += the products of two numbers each.
struct Madd {
  SMELT_AVX512_INLINE static __m512i Add(__m512i sum, __m512i x, __m512i w) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(x, w));
  }
};
struct Vnni {
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"),
                 always_inline)) static inline __m512i
  Add(__m512i sum, __m512i x, __m512i w) {
    return _mm512_dpwssd_epi32(sum, x, w);
  }
};

#define SMELT_TILE_AVX512(Name, Products, target)                                           \
  template <int P>                                                                          \
  target void Name(const ExactInt8Tile& tile) {                                             \
    __m512i sum[P][2];                                                                      \
    SMELT_EXACT_UNROLL for (int v = 0; v < 2; ++v) {                                        \
      const __m512i start = _mm512_loadu_si512(tile.start + v * 16);                        \
      SMELT_EXACT_UNROLL for (int p = 0; p < P; ++p) sum[p][v] = start;                     \
    }                                                                                       \
    const int8_t* w = tile.weights;                                                         \
    const int64_t bytes = tile.groups * 4;                                                  \
    for (int64_t s = 0; s < tile.num_segments; ++s) {                                       \
      const char* x[P];                                                                     \
      SMELT_EXACT_UNROLL for (int p = 0; p < P; ++p) {                                      \
        x[p] = reinterpret_cast<const char*>(tile.rows[p] + tile.segments[s]);              \
      }                                                                                     \
      for (int64_t at = 0; at < bytes; at += 4, w += 64) {                                  \
        const __m512i w0 = Widened32(w), w1 = Widened32(w + 32);                            \
        SMELT_EXACT_UNROLL for (int p = 0; p < P; ++p) {                                    \
          const __m512i two =                                                               \
              _mm512_broadcastd_epi32(_mm_loadu_si32(static_cast<const void*>(x[p] + at))); \
          sum[p][0] = Products::Add(sum[p][0], two, w0);                                    \
          sum[p][1] = Products::Add(sum[p][1], two, w1);                                    \
        }                                                                                   \
      }                                                                                     \
    }                                                                                       \
    if (tile.sums != nullptr) {                                                             \
      SMELT_EXACT_UNROLL for (int p = 0; p < P; ++p) {                                      \
        _mm512_storeu_si512(tile.sums + p * 32, sum[p][0]);                                 \
        _mm512_storeu_si512(tile.sums + p * 32 + 16, sum[p][1]);                            \
      }                                                                                     \
      return;                                                                               \
    }                                                                                       \
    SMELT_EXACT_UNROLL for (int v = 0; v < 2; ++v) {                                        \
      const int64_t left = tile.columns - v * 16;                                           \
      if (left <= 0) break;                                                                 \
      const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);      \
      const Factors16 f = LoadFactors16(tile.steps, v * 16);                                \
      SMELT_EXACT_UNROLL for (int p = 0; p < P; ++p) {                                      \
        _mm_mask_storeu_epi8(tile.y + p * tile.y_step + v * 16, mask,                       \
                             Narrow(Scale16(sum[p][v], f), tile.steps));                    \
      }                                                                                     \
    }                                                                                       \
  }
SMELT_TILE_AVX512(TileAvx512, Madd, SMELT_AVX512)
SMELT_TILE_AVX512(TileVnni, Vnni, SMELT_AVX512_VNNI)
#undef SMELT_TILE_AVX512

using TileFn = void (*)(const ExactInt8Tile&);

void RunAvx2(const ExactInt8Tile& tile, int rows) {
  static constexpr TileFn kTiles[] = {TileAvx2<1>, TileAvx2<2>, TileAvx2<3>,
                                      TileAvx2<4>, TileAvx2<5>, TileAvx2<6>};
  kTiles[rows - 1](tile);
}
void RunAvx512(const ExactInt8Tile& tile, int rows) {
  static constexpr TileFn kTiles[] = {TileAvx512<1>, TileAvx512<2>, TileAvx512<3>, TileAvx512<4>,
                                      TileAvx512<5>, TileAvx512<6>, TileAvx512<7>, TileAvx512<8>};
  kTiles[rows - 1](tile);
}
void RunVnni(const ExactInt8Tile& tile, int rows) {
  static constexpr TileFn kTiles[] = {TileVnni<1>, TileVnni<2>, TileVnni<3>, TileVnni<4>,
                                      TileVnni<5>, TileVnni<6>, TileVnni<7>, TileVnni<8>};
  kTiles[rows - 1](tile);
}

#undef SMELT_EXACT_UNROLL
#undef SMELT_AVX2
#undef SMELT_AVX512
#undef SMELT_AVX512_VNNI
#undef SMELT_AVX2_INLINE
#undef SMELT_AVX512_INLINE

}  // namespace

void FillOwnExactInt8(ExactInt8Loops& t) {
  const IsaLevel level = Isa().level;
  if (level == IsaLevel::kBaseline) return;
  t.group = 2;
  t.panel = 16;
  t.rows = 6;
  t.tile = RunAvx2;
  t.depthwise_places = kCrossedPlaces;
  t.depthwise = DepthwiseAvx2Any;
  if (level != IsaLevel::kAvx512) return;
  t.panel = 32;
  t.rows = 8;
  t.tile = CpuHas(CpuFeature::kDotBytes) ? RunVnni : RunAvx512;
}

}  // namespace smelt
