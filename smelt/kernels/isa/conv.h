// Inner loops of convolutions and pools of floats whose channels lie innermost. Thread safe.
#ifndef SMELT_KERNELS_ISA_CONV_H_
#define SMELT_KERNELS_ISA_CONV_H_

#include <cstdint>

#include "smelt/kernels/isa/isa.h"

namespace smelt {

// Some neighboring pixels of a convolution's result by some vectors of its channels: the sum of
// `runs` runs of floats times weights, bias, and what is done to it.
inline constexpr int kConvTilePixels = 8, kConvTileVecs = 3;  // at most
struct ConvTile {
  // [runs, pixels of the tile]: where each run begins; nullptr for the first pixel: the run counts
  // nothing.
  const float* const* pixels = nullptr;
  int64_t runs = 0, run = 0;       // floats of each
  const float* weights = nullptr;  // [runs * run, vectors * lanes]
  const float* bias = nullptr;     // [vectors * lanes]
  const float* addend = nullptr;   // added to the result, lies as it does; nullptr: nothing
  float* y = nullptr;
  const int64_t* places = nullptr;  // [pixels of the tile]: where each lies behind y
  int64_t columns = 0;              // that are stored; all vectors but the last whole
  // What is added and where y is written lies beyond the core's cache, which is asked for it first.
  bool fetches = false;
  // What a core's cache is asked for meanwhile: with each float of a run `ahead_step` bytes more.
  const void* ahead = nullptr;
  int64_t ahead_step = 0;
  bool clamps = false;  // to [low, high]; NaN stays
  float low = 0, high = 0;
};
using ConvTileFn = void (*)(const ConvTile& tile);

inline constexpr int64_t kMostDepthwiseTaps = 128;
// A depthwise convolution of images: y = act(clamp(sum + bias)). Sizes and steps are in pixels;
// taps outside of the image count nothing.
struct DepthwiseLoop {
  int64_t channels = 0;  // at least ConvLoops::lanes
  int64_t in_h = 0, in_w = 0, out_h = 0, out_w = 0;
  // Of the window at most kMostDepthwiseTaps taps.
  int64_t kernel_h = 0, kernel_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  const float* weights = nullptr;  // [kernel_h, kernel_w, channels]; see narrow_depthwise
  const float* bias = nullptr;     // [channels]
  const void* zeros = nullptr;     // [channels], of what x and y are stored as
  bool clamps = false;             // to [low, high]; NaN stays
  float low = 0, high = 0;
  IsaUnaryFn act = nullptr;  // nullptr: none
  float alpha = 0;
};

struct ConvLoops {
  int64_t lanes;  // floats of a vector
  // By vectors - 1: the most pixels of a tile; more of fewer vectors, where registers are few.
  int tile_pixels[kConvTileVecs];
  // By pixels - 1 and vectors - 1. y overlaps nothing but may be the addend.
  ConvTileFn tile[kConvTilePixels][kConvTileVecs];
  // Rows [first, last) of the results, counted through all images, in this thread. y overlaps
  // nothing.
  void (*depthwise)(const DepthwiseLoop& d, const float* x, float* y, int64_t first, int64_t last);
  // The same of the bits of bfloat16, computed in float and rounded once. Channels, at least
  // 2 * lanes, go in pieces of 2 * lanes, the last of which ends with the last channel. Weights and
  // bias are [pieces, kernel_h, kernel_w, 2 * lanes] and [pieces, 2 * lanes], of each piece the
  // even channels before the odd ones; their NaNs have no low payload bits.
  void (*narrow_depthwise)(const DepthwiseLoop& d, const uint16_t* x, uint16_t* y, int64_t first,
                           int64_t last);
  // The maxima of `count` taps, of `depth` floats each, at least lanes, for each of some pixels,
  // whose taps lie `step` floats behind those of the one before: y is [pixels, depth] and overlaps
  // nothing. NaN counts nothing, and where nothing counts stands the lowest float.
  void (*max_pool)(const float* const* taps, int64_t count, int64_t pixels, int64_t step,
                   int64_t depth, float* y);
  // The same of the bits of bfloat16, of at least 2 * lanes channels; its lowest number is float's,
  // cut.
  void (*narrow_max_pool)(const uint16_t* const* taps, int64_t count, int64_t pixels, int64_t step,
                          int64_t depth, uint16_t* y);
};

// Those of the set that Isa() chose.
const ConvLoops& IsaConv();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_CONV_H_
