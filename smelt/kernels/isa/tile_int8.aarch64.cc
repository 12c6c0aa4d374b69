#include "smelt/kernels/isa/tile_int8.h"

#include <arm_neon.h>

#include <cstring>

#include "smelt/kernels/isa/swish.aarch64.h"

namespace smelt {
namespace {

#define SMELT_TILE_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#define SMELT_TILE_UNROLL _Pragma("GCC unroll 6")

// One vector of a tile, of `vecs`: four registers of sums for each pixel.
template <int P>
SMELT_TILE_DOT void SwishVector(const Int8Tile& tile, int v, int vecs) {
  constexpr int kLanes = kInt8TileLanes;
  const int8_t* weights = tile.weights + v * kLanes * 4;
  const int64_t step = vecs * kLanes * 4;
  // The instruction takes signed bytes: 128 is taken off each of the pixels', and the sums begin
  // with 128 times the weights.
  int32x4_t start[4], sum[P][4];
  for (int q = 0; q < 4; ++q) start[q] = vld1q_s32(tile.start + v * kLanes + q * 4);
  const int8x16_t half = vdupq_n_s8(64);
  for (int64_t g = 0; g < tile.groups; ++g) {
    for (int q = 0; q < 4; ++q) {
      const int8x16_t w = vld1q_s8(weights + g * step + q * 16);
      start[q] = vdotq_s32(vdotq_s32(start[q], w, half), w, half);
    }
  }
  SMELT_TILE_UNROLL for (int p = 0; p < P; ++p) {
    SMELT_TILE_UNROLL for (int q = 0; q < 4; ++q) sum[p][q] = start[q];
  }
  const int32x4_t sign = vdupq_n_s32(static_cast<int32_t>(0x80808080u));
  for (int64_t g = 0; g < tile.groups; ++g, weights += step) {
    int8x16_t w[4];
    SMELT_TILE_UNROLL for (int q = 0; q < 4; ++q) w[q] = vld1q_s8(weights + q * 16);
    SMELT_TILE_UNROLL for (int p = 0; p < P; ++p) {
      int32_t bytes;
      std::memcpy(&bytes, tile.pixels[p] + g * 4, sizeof(bytes));
      const int8x16_t four = vreinterpretq_s8_s32(veorq_s32(vdupq_n_s32(bytes), sign));
      SMELT_TILE_UNROLL for (int q = 0; q < 4; ++q) sum[p][q] = vdotq_s32(sum[p][q], w[q], four);
    }
  }
  const SwishInt8Steps& s = tile.steps;
  const uint16_t mask = v + 1 < vecs ? uint16_t{0xffff} : tile.last;
  const int64_t size = s.bytes ? 1 : sizeof(float);
  for (int p = 0; p < P; ++p) {
    float y[kLanes];
    uint8_t bytes[kLanes];
    for (int q = 0; q < 4; ++q) {
      const float32x4_t scale = vld1q_f32(tile.scales + v * kLanes + q * 4);
      float32x4_t number = SwishNeon(vmulq_f32(vcvtq_f32_s32(sum[p][q]), scale));
      vst1q_f32(y + q * 4, number);
      if (!s.bytes) continue;
      number = vfmaq_f32(vdupq_n_f32(s.zero), number, vdupq_n_f32(s.factor));
      // Of a NaN and a number the number.
      number = vminnmq_f32(vmaxnmq_f32(number, vdupq_n_f32(s.low)), vdupq_n_f32(s.high));
      const int32x4_t rounded = vcvtnq_s32_f32(number);
      for (int i = 0; i < 4; ++i) bytes[q * 4 + i] = static_cast<uint8_t>(rounded[i]);
    }
    const void* from = s.bytes ? static_cast<const void*>(bytes) : y;
    char* to = static_cast<char*>(tile.y) + (p * tile.y_step + v * kLanes) * size;
    if (mask == 0xffff) {
      std::memcpy(to, from, static_cast<size_t>(kLanes * size));
      continue;
    }
    for (int i = 0; i < kLanes; ++i) {
      if ((mask >> i & 1) == 0) continue;
      std::memcpy(to + i * size, static_cast<const char*>(from) + i * size,
                  static_cast<size_t>(size));
    }
  }
}
#undef SMELT_TILE_DOT
#undef SMELT_TILE_UNROLL

template <int P, int V>
void SwishTile(const Int8Tile& tile) {
  for (int v = 0; v < V; ++v) SwishVector<P>(tile, v, V);
}

}  // namespace

#include "smelt/kernels/isa/tile_int8_table.inc"

}  // namespace smelt
