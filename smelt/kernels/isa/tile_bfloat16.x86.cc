#include "smelt/kernels/isa/tile_bfloat16.h"

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <utility>

#include "smelt/kernels/isa/unroll.h"

namespace smelt {
namespace {

#define SMELT_TILE_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")))

// GCC copies the sums of the intrinsic from register to register, and spills them.
SMELT_TILE_BF16 __attribute__((always_inline)) inline void AddPairs(__m512& sum, __m512i x,
                                                                    __m512i w) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
}

SMELT_TILE_BF16 __attribute__((always_inline)) inline __m512 Widened(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

SMELT_TILE_BF16 __attribute__((always_inline)) inline __m256i LoadWhole(const uint16_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

template <int R, int V, bool kAdds, bool kCut>
SMELT_TILE_BF16 __attribute__((always_inline)) inline void TileOfSums(const NarrowTile& t) {
  constexpr int kLanes = kNarrowTileLanes;
  uint16_t* const y = t.y;
  const int64_t step = t.y_step;
  __m512 sum[R][V];
  SMELT_UNROLL for (int v = 0; v < V; ++v) {
    const __m512 bias = _mm512_loadu_ps(t.bias + v * kLanes);
    SMELT_UNROLL for (int r = 0; r < R; ++r) sum[r][v] = bias;
  }
  if (t.fetches) {
    const uint16_t* next = t.y + R * t.y_step;
    SMELT_UNROLL for (int r = 0; r < R; ++r) {
      SMELT_UNROLL for (int v = 0; v < V; v += 2) {
        __builtin_prefetch(next + r * t.y_step + v * kLanes, 1);
      }
    }
    if (kAdds && t.addend != t.y) {
      const uint16_t* other = t.addend + R * t.y_step;
      SMELT_UNROLL for (int r = 0; r < R; ++r) {
        SMELT_UNROLL for (int v = 0; v < V; v += 2) {
          __builtin_prefetch(other + r * t.y_step + v * kLanes);
        }
      }
    }
  }
  const uint16_t* w = t.weights;
  const uint16_t* x[R];
  SMELT_UNROLL for (int r = 0; r < R; ++r) x[r] = t.x + r * t.x_step;
  for (int64_t at = 0; at < t.pairs * 2; at += 2, w += V * kLanes * 2) {
    __m512i weights[V];
    SMELT_UNROLL for (int v = 0; v < V; ++v) {
      weights[v] = _mm512_loadu_si512(w + v * kLanes * 2);
    }
    SMELT_UNROLL for (int r = 0; r < R; ++r) {
      const __m512i two = _mm512_broadcastd_epi32(_mm_loadu_si32(x[r] + at));
      SMELT_UNROLL for (int v = 0; v < V; ++v) AddPairs(sum[r][v], two, weights[v]);
    }
  }
  // Before anything is written: a load waits for a masked store near it.
  if constexpr (kAdds) {
    SMELT_UNROLL for (int r = 0; r < R; ++r) {
      SMELT_UNROLL for (int v = 0; v < V; ++v) {
        const uint16_t* from = t.addend + r * t.y_step + v * kLanes;
        const bool whole = v + 1 < V || !kCut;
        sum[r][v] = _mm512_add_ps(
            sum[r][v], Widened(whole ? LoadWhole(from) : _mm256_maskz_loadu_epi32(t.last, from)));
      }
    }
  }
  const __m512 low = _mm512_set1_ps(t.low), high = _mm512_set1_ps(t.high);
  const __mmask8 last = t.last;
  SMELT_UNROLL for (int r = 0; r < R; ++r) {
    uint16_t* to = y + r * step;
    SMELT_UNROLL for (int v = 0; v < V; ++v) {
      // Of a number and NaN the second is taken.
      const __m512 clamped = _mm512_min_ps(high, _mm512_max_ps(low, sum[r][v]));
      const __m256i narrow = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(clamped));
      if (v + 1 < V || !kCut) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + v * kLanes), narrow);
      } else {
        _mm256_mask_storeu_epi32(to + v * kLanes, last, narrow);
      }
    }
  }
}

template <int R, int V>
SMELT_TILE_BF16 void TileOf(const NarrowTile& tile) {
  const bool cut = tile.last != 0xff;
  if (tile.addend == nullptr) {
    cut ? TileOfSums<R, V, false, true>(tile) : TileOfSums<R, V, false, false>(tile);
  } else {
    cut ? TileOfSums<R, V, true, true>(tile) : TileOfSums<R, V, true, false>(tile);
  }
}

#undef SMELT_TILE_BF16

template <int V, int... R>
constexpr std::array<NarrowTileFn, sizeof...(R)> TilesOf(std::integer_sequence<int, R...>) {
  return {TileOf<R + 1, V>...};
}

// By rows - 1.
template <int V>
constexpr auto kTiles = TilesOf<V>(std::make_integer_sequence<int, kNarrowTileRows>());

}  // namespace

NarrowTileFn NarrowTileOf(int rows, int vecs) {
  static_assert(kNarrowTileVecs == 3);
  const auto i = static_cast<size_t>(rows - 1);
  return vecs == 1 ? kTiles<1>[i] : vecs == 2 ? kTiles<2>[i] : kTiles<3>[i];
}

}  // namespace smelt
