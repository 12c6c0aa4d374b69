#include "smelt/kernels/isa/exact_int8.x86.h"

#include <type_traits>

#include "smelt/base/processor.h"
#include "smelt/kernels/isa/int8_sums.x86.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/unroll.h"

namespace smelt {
namespace {

// ---- AVX2

SMELT_AVX2_INLINE __m256i Widened(const int8_t* p) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

template <int P>
SMELT_AVX2_INLINE void FinishTile2(const ExactInt8Tile& tile, const __m256i (&sum)[P][2]) {
  const Scales8 first = LoadScales8(tile.scales, 0), second = LoadScales8(tile.scales, 8);
  SMELT_UNROLL for (int p = 0; p < P; ++p) {
    StorePart(tile.y + p * tile.y_step,
              NarrowInOrder16(Scale8(sum[p][0], first), Scale8(sum[p][1], second)), tile.columns);
  }
}

// In floats.
template <bool kAdds, int P>
SMELT_SUMS_INLINE void FinishBlock2(const ExactInt8Tile& tile, const __m256i (&sum)[P][2]) {
  const Int8SumBlock block = *tile.block;
  const SumsToBytes<kAdds> end(block, 0);
  SMELT_UNROLL for (int p = 0; p < P; ++p) {
    end.Store(block, p, 0, block.columns, _mm256_cvtepi32_ps(sum[p][0]),
              _mm256_cvtepi32_ps(sum[p][1]));
  }
}

// Weights of eight columns.
SMELT_AVX2_INLINE __m256i Weights8(const int8_t* p) { return Widened(p); }
SMELT_AVX2_INLINE __m256i Weights8(const int16_t* p) { return Load8(p); }

template <int P, typename W>
SMELT_SUMS_INLINE void MultiplyTile2(const ExactInt8Tile& tile, const W* w) {
  __m256i sum[P][2];
  SMELT_UNROLL for (int v = 0; v < 2; ++v) {
    const __m256i start = Load8(tile.start + v * 8);
    SMELT_UNROLL for (int p = 0; p < P; ++p) sum[p][v] = start;
  }
  const int64_t bytes = tile.groups * 4;
  for (int64_t s = 0; s < tile.num_segments; ++s) {
    const char* x[P];
    SMELT_UNROLL for (int p = 0; p < P; ++p) {
      x[p] = reinterpret_cast<const char*>(tile.rows[p] + tile.segments[s]);
    }
    for (int64_t at = 0; at < bytes; at += 4, w += 32) {
      const __m256i w0 = Weights8(w), w1 = Weights8(w + 16);
      SMELT_UNROLL for (int p = 0; p < P; ++p) {
        const __m256i two =
            _mm256_broadcastd_epi32(_mm_loadu_si32(static_cast<const void*>(x[p] + at)));
        sum[p][0] = _mm256_add_epi32(sum[p][0], _mm256_madd_epi16(two, w0));
        sum[p][1] = _mm256_add_epi32(sum[p][1], _mm256_madd_epi16(two, w1));
      }
    }
  }
  if (std::is_same_v<W, int16_t> && tile.block != nullptr) {
    tile.block->addend != nullptr ? FinishBlock2<true, P>(tile, sum)
                                  : FinishBlock2<false, P>(tile, sum);
  } else if (tile.sums != nullptr) {
    SMELT_UNROLL for (int p = 0; p < P; ++p) {
      Store8(tile.sums + p * 16, sum[p][0]);
      Store8(tile.sums + p * 16 + 8, sum[p][1]);
    }
  } else {
    FinishTile2<P>(tile, sum);
  }
}

template <int P>
SMELT_SUMS void TileAvx2(const ExactInt8Tile& tile) {
  MultiplyTile2<P>(tile, tile.weights);
}
template <int P>
SMELT_SUMS void WideTileAvx2(const ExactInt8Tile& tile) {
  MultiplyTile2<P>(tile, tile.wide_weights);
}

// The sums of N results, in the order in which interleaving leaves them.
template <int N>
SMELT_AVX2_INLINE void SumDepthwise(const ExactInt8Depthwise& run, int64_t from,
                                    __m256i (&sum)[N][2]) {
  SMELT_UNROLL for (int v = 0; v < 2; ++v) {
    const __m256i start = Load8(run.start + v * 8);
    SMELT_UNROLL for (int i = 0; i < N; ++i) sum[i][v] = start;
  }
  const int16_t* x = run.x + from * run.x_step;
  const int16_t* w = run.weights;
  for (int64_t t = 0; t < 2 * run.pairs; t += 2, w += 32) {
    const int16_t *first = x + run.taps[t], *second = x + run.taps[t + 1];
    const __m256i w_low = Load8(w), w_high = Load8(w + 16);
    SMELT_UNROLL for (int i = 0; i < N; ++i) {
      const __m256i a = Load8(first + i * run.x_step), b = Load8(second + i * run.x_step);
      sum[i][0] =
          _mm256_add_epi32(sum[i][0], _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w_low));
      sum[i][1] =
          _mm256_add_epi32(sum[i][1], _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w_high));
    }
  }
}

// One block of channels: results [from, from + N) side by side, or their sums.
template <bool kSums, int N>
SMELT_AVX2_INLINE void DepthwiseResults(const ExactInt8Depthwise& run, int64_t from,
                                        const Scales8& low, const Scales8& high) {
  __m256i sum[N][2];
  SumDepthwise<N>(run, from, sum);
  SMELT_UNROLL for (int i = 0; i < N; ++i) {
    if constexpr (kSums) {
      int32_t* to = run.sums + (from + i) * 16;
      Store8(to, _mm256_permute2x128_si256(sum[i][0], sum[i][1], 0x20));
      Store8(to + 8, _mm256_permute2x128_si256(sum[i][0], sum[i][1], 0x31));
    } else {
      // Interleaving left lanes 0 to 3 and 8 to 11 in the first: narrowing sets them right.
      StorePart(run.y + (from + i) * run.y_step,
                Narrow16(Scale8(sum[i][0], low), Scale8(sum[i][1], high)), run.channels);
    }
  }
}

template <bool kSums>
SMELT_AVX2 void DepthwiseAvx2(const ExactInt8Depthwise& run) {
  Scales8 low = {}, high = {};
  if (!kSums) {
    low = LoadScales8(run.scales, 0);
    high = LoadScales8(run.scales, 8);
  }
  int64_t i = 0;
  for (; i + 2 <= run.results; i += 2) DepthwiseResults<kSums, 2>(run, i, low, high);
  if (i < run.results) DepthwiseResults<kSums, 1>(run, i, low, high);
}

// In floats.
template <bool kAdds, int N>
SMELT_SUMS_INLINE void DepthwiseToBytes(const ExactInt8Depthwise& run, int64_t from,
                                        const Int8SumBlock& block, const SumsToBytes<kAdds>& end) {
  __m256i sum[N][2];
  SumDepthwise<N>(run, from, sum);
  SMELT_UNROLL for (int i = 0; i < N; ++i) {
    const __m256i first = _mm256_permute2x128_si256(sum[i][0], sum[i][1], 0x20);
    const __m256i second = _mm256_permute2x128_si256(sum[i][0], sum[i][1], 0x31);
    end.Store(block, from + i, 0, block.columns, _mm256_cvtepi32_ps(first),
              _mm256_cvtepi32_ps(second));
  }
}
template <bool kAdds>
SMELT_SUMS void DepthwiseOfBlock(const ExactInt8Depthwise& run) {
  const Int8SumBlock block = *run.block;
  const SumsToBytes<kAdds> end(block, 0);
  int64_t i = 0;
  for (; i + 2 <= run.results; i += 2) DepthwiseToBytes<kAdds, 2>(run, i, block, end);
  if (i < run.results) DepthwiseToBytes<kAdds, 1>(run, i, block, end);
}
void DepthwiseOfAnyBlock(const ExactInt8Depthwise& run) {
  run.block->addend != nullptr ? DepthwiseOfBlock<true>(run) : DepthwiseOfBlock<false>(run);
}

void DepthwiseAvx2Any(const ExactInt8Depthwise& run) {
  run.sums != nullptr ? DepthwiseAvx2<true>(run) : DepthwiseAvx2<false>(run);
}

constexpr uint8_t kCrossedPlaces[kExactDepthwiseBlock] = {0, 1, 2, 3, 8,  9,  10, 11,
                                                          4, 5, 6, 7, 12, 13, 14, 15};

// ---- AVX-512: the same with registers twice as wide, and 32 of them.

SMELT_AVX512_INLINE __m512i Widened32(const int8_t* p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// What tiles differ in: `vector` holds the weights of 16 columns, which Load reads; sum += their
// products with the four bytes of numbers that x has in each lane.
struct Madd {
  static constexpr int64_t kVector = 32;
  SMELT_AVX512_INLINE static const char* Row(const ExactInt8Tile& t, int64_t p, int64_t at) {
    return reinterpret_cast<const char*>(t.rows[p] + at);
  }
  SMELT_AVX512_INLINE static __m512i Load(const int8_t* w) { return Widened32(w); }
  SMELT_AVX512_INLINE static __m512i Add(__m512i sum, __m512i x, __m512i w) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(x, w));
  }
};
struct Vnni : Madd {
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"),
                 always_inline)) static inline __m512i
  Add(__m512i sum, __m512i x, __m512i w) {
    return _mm512_dpwssd_epi32(sum, x, w);
  }
};
struct VnniOfBytes {
  static constexpr int64_t kVector = 64;
  SMELT_AVX512_INLINE static const char* Row(const ExactInt8Tile& t, int64_t p, int64_t at) {
    return reinterpret_cast<const char*>(t.byte_rows[p] + at);
  }
  SMELT_AVX512_INLINE static __m512i Load(const int8_t* w) { return _mm512_loadu_si512(w); }
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"),
                 always_inline)) static inline __m512i
  Add(__m512i sum, __m512i x, __m512i w) {
    return _mm512_dpbusd_epi32(sum, x, w);
  }
};

template <int P>
SMELT_AVX512_INLINE void FinishTile32(const ExactInt8Tile& tile, const __m512i (&sum)[P][2]) {
  const Finish32 finish(tile.scales, tile.columns);
  SMELT_UNROLL for (int p = 0; p < P; p += 2) {
    const int q = p + 1 < P ? p + 1 : p;
    finish.Store(sum[p][0], sum[p][1], tile.y + p * tile.y_step, sum[q][0], sum[q][1],
                 tile.y + q * tile.y_step);
  }
}

// Few rows would wait for one sum after the other: several groups have sums of their own.
template <int P>
constexpr int kSumsOfGroups = P == 1   ? 4
                              : P == 2 ? 2
                                       : 1;

// Tiles of many rows read weights slower than they come, but not as soon: so many groups ahead the
// nearest cache is asked for them.
constexpr int kFewestRowsAhead = 4, kGroupsAhead = 16;

#define SMELT_TILE_AVX512(Name, Products, target)                                             \
  template <int P>                                                                            \
  target void Name(const ExactInt8Tile& tile) {                                               \
    constexpr int kGroups = kSumsOfGroups<P>;                                                 \
    __m512i sum[kGroups][P][2];                                                               \
    SMELT_UNROLL for (int v = 0; v < 2; ++v) {                                                \
      const __m512i start = _mm512_loadu_si512(tile.start + v * 16);                          \
      SMELT_UNROLL for (int p = 0; p < P; ++p) {                                              \
        SMELT_UNROLL for (int g = 0; g < kGroups; ++g) {                                      \
          sum[g][p][v] = g == 0 ? start : _mm512_setzero_si512();                             \
        }                                                                                     \
      }                                                                                       \
    }                                                                                         \
    const int8_t* w = tile.weights;                                                           \
    const int64_t bytes = tile.groups * 4;                                                    \
    for (int64_t s = 0; s < tile.num_segments; ++s) {                                         \
      const char* x[P];                                                                       \
      SMELT_UNROLL for (int p = 0; p < P; ++p) {                                              \
        x[p] = Products::Row(tile, p, tile.segments[s]);                                      \
      }                                                                                       \
      for (int64_t at = 0; at < bytes;) {                                                     \
        const int groups = bytes - at < 4 * kGroups ? 1 : kGroups;                            \
        SMELT_UNROLL for (int g = 0; g < kGroups; ++g) {                                      \
          if (g >= groups) break;                                                             \
          const __m512i w0 = Products::Load(w), w1 = Products::Load(w + Products::kVector);   \
          if (P >= kFewestRowsAhead) {                                                        \
            _mm_prefetch(w + kGroupsAhead * 2 * Products::kVector, _MM_HINT_T0);              \
            _mm_prefetch(w + kGroupsAhead * 2 * Products::kVector + 64, _MM_HINT_T0);         \
          }                                                                                   \
          SMELT_UNROLL for (int p = 0; p < P; ++p) {                                          \
            const __m512i four =                                                              \
                _mm512_broadcastd_epi32(_mm_loadu_si32(static_cast<const void*>(x[p] + at))); \
            sum[g][p][0] = Products::Add(sum[g][p][0], four, w0);                             \
            sum[g][p][1] = Products::Add(sum[g][p][1], four, w1);                             \
          }                                                                                   \
          w += 2 * Products::kVector;                                                         \
          at += 4;                                                                            \
        }                                                                                     \
      }                                                                                       \
    }                                                                                         \
    SMELT_UNROLL for (int g = 1; g < kGroups; ++g) {                                          \
      SMELT_UNROLL for (int p = 0; p < P; ++p) {                                              \
        sum[0][p][0] = _mm512_add_epi32(sum[0][p][0], sum[g][p][0]);                          \
        sum[0][p][1] = _mm512_add_epi32(sum[0][p][1], sum[g][p][1]);                          \
      }                                                                                       \
    }                                                                                         \
    if (tile.sums != nullptr) {                                                               \
      SMELT_UNROLL for (int p = 0; p < P; ++p) {                                              \
        _mm512_storeu_si512(tile.sums + p * 32, sum[0][p][0]);                                \
        _mm512_storeu_si512(tile.sums + p * 32 + 16, sum[0][p][1]);                           \
      }                                                                                       \
      return;                                                                                 \
    }                                                                                         \
    FinishTile32<P>(tile, sum[0]);                                                            \
  }
SMELT_TILE_AVX512(TileAvx512, Madd, SMELT_AVX512)
SMELT_TILE_AVX512(TileVnni, Vnni, SMELT_AVX512_VNNI)
SMELT_TILE_AVX512(TileOfBytes, VnniOfBytes, SMELT_AVX512_VNNI)
#undef SMELT_TILE_AVX512

using TileFn = void (*)(const ExactInt8Tile&);

void RunAvx2(const ExactInt8Tile& tile, int rows) {
  static constexpr TileFn kTiles[] = {TileAvx2<1>, TileAvx2<2>, TileAvx2<3>,
                                      TileAvx2<4>, TileAvx2<5>, TileAvx2<6>};
  kTiles[rows - 1](tile);
}
void RunWideAvx2(const ExactInt8Tile& tile, int rows) {
  static constexpr TileFn kTiles[] = {WideTileAvx2<1>, WideTileAvx2<2>, WideTileAvx2<3>,
                                      WideTileAvx2<4>, WideTileAvx2<5>, WideTileAvx2<6>};
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
void RunOfBytes(const ExactInt8Tile& tile, int rows) {
  static constexpr TileFn kTiles[] = {TileOfBytes<1>, TileOfBytes<2>, TileOfBytes<3>,
                                      TileOfBytes<4>, TileOfBytes<5>, TileOfBytes<6>,
                                      TileOfBytes<7>, TileOfBytes<8>};
  kTiles[rows - 1](tile);
}

}  // namespace

void FillOwnExactInt8(ExactInt8Loops& t) {
  const IsaLevel level = Isa().level;
  if (level == IsaLevel::kBaseline) return;
  FillExactInt8Pairs(t, level == IsaLevel::kAvx512);
  t.group = 2;
  t.panel = 16;
  t.rows = 6;
  t.tile = RunAvx2;
  t.wide_tile = RunWideAvx2;
  t.depthwise_places = kCrossedPlaces;
  t.depthwise = DepthwiseAvx2Any;
  t.depthwise_of_block = DepthwiseOfAnyBlock;
  if (level != IsaLevel::kAvx512) return;
  t.panel = 32;
  t.rows = 8;
  t.tile = RunAvx512;
  t.wide_tile = nullptr;
  if (!CpuHas(CpuFeature::kDotBytes)) return;
  t.tile = RunVnni;
  t.byte_group = 4;
  t.byte_tile = RunOfBytes;
  FillExactInt8Depthwise(t);
  if (CpuHas(CpuFeature::kTilesOfBytes)) FillExactInt8Matrices(t);
}

}  // namespace smelt
