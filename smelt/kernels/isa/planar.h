// Inner loops of convolutions of floats with few channels of results: lanes are neighboring pixels
// of a line, whose image's channels lie as planes. Thread safe.
#ifndef SMELT_KERNELS_ISA_PLANAR_H_
#define SMELT_KERNELS_ISA_PLANAR_H_

#include <cstdint>
#include <limits>

#include "smelt/kernels/isa/isa.h"

namespace smelt {

inline constexpr int kPlanarChannels = 8, kPlanarVecs = 8;  // at most
// Neighboring pixels of a line of the result, all channels.
struct PlanarTile {
  // [tap_rows]: where the first pixel's first tap lies in plane 0 of the line; nullptr: the line
  // counts nothing.
  const float* const* lines = nullptr;
  int64_t tap_rows = 0, taps = 0, tap_step = 1;  // of the window; floats from tap to tap
  int64_t depth = 0, pitch = 0;                  // planes; floats from plane to plane
  const float* weights = nullptr;                // [tap_rows, depth, taps, channels]
  const float* bias = nullptr;                   // [channels]
  // Results are brought to [low, high], where NaN stays.
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  float* y = nullptr;  // [channels, vectors * lanes]; overlaps nothing
};
using PlanarFn = void (*)(const PlanarTile& tile);

struct PlanarLoops {
  int64_t lanes;  // floats of a vector
  // At most, where vectors of pixels pay: of more, those of channels are half full.
  int64_t channels;
  // By channels - 1: the most vectors of a tile.
  int vectors[kPlanarChannels];
  // By channels - 1 and vectors - 1.
  PlanarFn tile[kPlanarChannels][kPlanarVecs];
  // y[c * pitch + i] = x[i * depth + c] of so many pixels. Overlap nothing.
  void (*planes)(const float* x, int64_t pixels, int64_t depth, float* y, int64_t pitch);
  // By channels - 1: y[i * step + c] = planes[c * pitch + i] of so many pixels. Overlap nothing.
  void (*pixels[kPlanarChannels])(const float* planes, int64_t pitch, int64_t pixels, float* y,
                                  int64_t step);
};

// Those of the set that Isa() chose.
const PlanarLoops& IsaPlanar();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_PLANAR_H_
