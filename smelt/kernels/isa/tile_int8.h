// Tiles of convolutions and products of unsigned bytes and int8 weights by dot products of four
// bytes (AVX512-VNNI, DotProd), with x * sigmoid(x) behind them while the sums are in registers.
// Thread safe.
#ifndef SMELT_KERNELS_ISA_TILE_INT8_H_
#define SMELT_KERNELS_ISA_TILE_INT8_H_

#include <cstdint>

namespace smelt {

constexpr int64_t kInt8TileLanes = 16;  // channels of a vector
constexpr int kInt8TilePixels = 6, kInt8TileVecs = 4;

// What is done to a sum s of channel c: v = swish(s * scale[c]); a float result is v, one of bytes
// is rint(clamp(v * factor + zero, low, high)) modulo 256, a NaN as low.
struct SwishInt8Steps {
  bool bytes = false;
  float factor = 1, zero = 0, low = 0, high = 0;
};

struct Int8Tile {
  const uint8_t* const* pixels = nullptr;  // where the bytes of each begin
  int64_t groups = 0;                      // of four bytes of each pixel
  const int8_t* weights = nullptr;         // [groups, vectors, lanes, 4]
  const int32_t* start = nullptr;          // [vectors, lanes]: what sums begin with
  const float* scales = nullptr;           // [vectors, lanes]
  SwishInt8Steps steps;
  void* y = nullptr;
  int64_t y_step = 0;      // elements from pixel to pixel
  uint16_t last = 0xffff;  // which lanes of the last vector are written
};
using Int8TileFn = void (*)(const Int8Tile& tile);

// 1 <= pixels <= kInt8TilePixels, 1 <= vecs <= kInt8TileVecs. REQUIRES: CpuHas(kDotBytes),
// and of x86 kX86V4 too (Int8IsNative).
Int8TileFn SwishInt8Tile(int pixels, int vecs);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_TILE_INT8_H_
