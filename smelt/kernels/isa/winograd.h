// Inner loops of convolutions with windows of 3x3 by Winograd's minimal filtering F(2x2, 3x3): two
// by two neighbors of the result are sums of 16 products in place of 36 (Lavin, Gray: Fast
// algorithms for convolutional neural networks, 2015). Thread safe.
#ifndef SMELT_KERNELS_ISA_WINOGRAD_H_
#define SMELT_KERNELS_ISA_WINOGRAD_H_

#include <cstdint>

#include "smelt/kernels/isa/isa.h"

namespace smelt {

inline constexpr int kWinogradTerms = 16, kWinogradPixels = 4;

// What a tile's results are made of, and what follows.
struct WinogradTile {
  int64_t channels = 0;          // a multiple of lanes
  const float* terms = nullptr;  // [kWinogradTerms, step], of which `channels` are read
  int64_t step = 0;
  const float* bias = nullptr;  // [channels]
  // Pixels of the result, row by row, and what is added to them; nullptr: outside of the result,
  // and nothing.
  float* y[kWinogradPixels] = {};
  const float* addend[kWinogradPixels] = {};
  bool clamps = false;  // to [low, high]; NaN stays
  float low = 0, high = 0;
};

struct WinogradLoops {
  int64_t lanes;  // floats of a vector
  // Of the 4x4 pixels that a tile is made of, `channels` floats each, a multiple of lanes:
  // v[k * step + c] for each of the terms.
  void (*of_pixels)(const float* const* pixels, int64_t channels, float* v, int64_t step);
  // The same of a window's 3x3 taps, times factors[c] where they are not nullptr.
  void (*of_taps)(const float* const* taps, const float* factors, int64_t channels, float* u,
                  int64_t step);
  // The pixels may be the addends.
  void (*to_pixels)(const WinogradTile& tile);
};

// Those of the set that Isa() chose.
const WinogradLoops& IsaWinograd();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_WINOGRAD_H_
