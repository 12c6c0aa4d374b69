// Tiles of products of bfloat16 by dot products of two (AVX512-BF16), with what follows done while
// the sums are in registers. Thread safe.
#ifndef SMELT_KERNELS_ISA_TILE_BFLOAT16_H_
#define SMELT_KERNELS_ISA_TILE_BFLOAT16_H_

#include <cstdint>

namespace smelt {

constexpr int64_t kNarrowTileLanes = 16;  // channels of a vector
constexpr int kNarrowTileRows = 8, kNarrowTileVecs = 3;

// Neighboring rows times some vectors of columns: y = clamp(x * weights + bias + addend), rounded
// once. Denormal numbers count as zeros, as do denormal results.
struct NarrowTile {
  const uint16_t* x = nullptr;        // bits of bfloat16
  int64_t x_step = 0;                 // elements from row to row
  int64_t pairs = 0;                  // of elements of each row
  const uint16_t* weights = nullptr;  // [pairs, vectors, lanes, 2]
  const float* bias = nullptr;        // [vectors, lanes]
  const uint16_t* addend = nullptr;   // lies as y does; nullptr: nothing
  uint16_t* y = nullptr;              // overlaps nothing but may be the addend
  int64_t y_step = 0;
  uint8_t last = 0xff;  // which pairs of lanes of the last vector are written
  // What is added and where y is written lies beyond the core's cache, which is asked for those of
  // the rows that come next.
  bool fetches = false;
  float low = 0, high = 0;  // NaN stays
};
using NarrowTileFn = void (*)(const NarrowTile& tile);

// 1 <= vecs <= kNarrowTileVecs, 1 <= rows <= kNarrowTileRows. nullptr: there are none for
// such processors. REQUIRES to call it: CpuHas(kDotBfloat16), and of x86 kX86V4 too.
NarrowTileFn NarrowTileOf(int rows, int vecs);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_TILE_BFLOAT16_H_
