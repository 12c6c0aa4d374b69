#include "smelt/kernels/isa/tile_int8.h"

#include <immintrin.h>

#include "smelt/kernels/isa/swish.x86.h"
#include "smelt/kernels/isa/unroll.h"

namespace smelt {
namespace {

#define SMELT_TILE_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

// sum += dot products of four bytes. GCC copies the sums of the intrinsic from register to
// register, and spills them.
SMELT_TILE_VNNI __attribute__((always_inline)) inline void AddDots(__m512i& sum, __m512i x,
                                                                   __m512i w) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
}

template <int P, int V>
SMELT_TILE_VNNI void SwishTile(const Int8Tile& tile) {
  constexpr int kLanes = kInt8TileLanes;
  __m512i sum[P][V];
  SMELT_UNROLL for (int v = 0; v < V; ++v) {
    const __m512i start = _mm512_loadu_si512(tile.start + v * kLanes);
    SMELT_UNROLL for (int p = 0; p < P; ++p) sum[p][v] = start;
  }
  const int8_t* w = tile.weights;
  const uint8_t* x[P];
  SMELT_UNROLL for (int p = 0; p < P; ++p) x[p] = tile.pixels[p];
  for (int64_t at = 0; at < tile.groups * 4; at += 4, w += V * kLanes * 4) {
    __m512i weights[V];
    SMELT_UNROLL for (int v = 0; v < V; ++v) {
      weights[v] = _mm512_loadu_si512(w + v * kLanes * 4);
    }
    SMELT_UNROLL for (int p = 0; p < P; ++p) {
      const __m512i four =
          _mm512_broadcastd_epi32(_mm_loadu_si32(static_cast<const void*>(x[p] + at)));
      SMELT_UNROLL for (int v = 0; v < V; ++v) AddDots(sum[p][v], four, weights[v]);
    }
  }
  const SwishInt8Steps& s = tile.steps;
  if (!s.bytes) {
    SMELT_UNROLL for (int v = 0; v < V; ++v) {
      const __m512 scale = _mm512_loadu_ps(tile.scales + v * kLanes);
      const __mmask16 mask = v + 1 < V ? static_cast<__mmask16>(0xffff) : tile.last;
      SMELT_UNROLL for (int p = 0; p < P; ++p) {
        const __m512 y = SwishAvx512(_mm512_mul_ps(_mm512_cvtepi32_ps(sum[p][v]), scale));
        _mm512_mask_storeu_ps(static_cast<float*>(tile.y) + p * tile.y_step + v * kLanes, mask, y);
      }
    }
    return;
  }
  const __m512 factor = _mm512_set1_ps(s.factor), zero = _mm512_set1_ps(s.zero);
  const __m512 high = _mm512_set1_ps(s.high);
  // Packing interleaves lanes of 16 bytes, which `order` sets right.
  const __m512i low = _mm512_set1_epi16(static_cast<int16_t>(s.low));
  const __m512i byte = _mm512_set1_epi16(0xff);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const uint64_t mask =
      (uint64_t{tile.last} << (V - 1) * kLanes) | ((uint64_t{1} << (V - 1) * kLanes) - 1);
  SMELT_UNROLL for (int p = 0; p < P; ++p) {
    __m512i q[V];
    SMELT_UNROLL for (int v = 0; v < V; ++v) {
      const __m512 scale = _mm512_loadu_ps(tile.scales + v * kLanes);
      const __m512 y = SwishAvx512(_mm512_mul_ps(_mm512_cvtepi32_ps(sum[p][v]), scale));
      // A minimum of a number and NaN is NaN here, which becomes the least integer.
      q[v] = _mm512_cvtps_epi32(_mm512_min_ps(high, _mm512_fmadd_ps(y, factor, zero)));
    }
    const __m512i front = _mm512_packs_epi32(q[0], q[V > 1 ? 1 : 0]);
    const __m512i back = V > 2 ? _mm512_packs_epi32(q[V > 2 ? 2 : 0], q[V - 1]) : front;
    const __m512i bytes = _mm512_packus_epi16(_mm512_and_si512(_mm512_max_epi16(front, low), byte),
                                              _mm512_and_si512(_mm512_max_epi16(back, low), byte));
    _mm512_mask_storeu_epi8(static_cast<uint8_t*>(tile.y) + p * tile.y_step, mask,
                            _mm512_permutexvar_epi32(order, bytes));
  }
}

#undef SMELT_TILE_VNNI

}  // namespace

#include "smelt/kernels/isa/tile_int8_table.inc"

}  // namespace smelt
