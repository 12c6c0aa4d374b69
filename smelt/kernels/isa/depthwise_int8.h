// Depthwise convolution of int8 pixels by dot products of four bytes (AVX512-VNNI, DotProd).
//
// Two neighboring results (a pair) are made at once from the pixels that either needs, four of
// these taps a step: the bytes of four pixels are laid side by side for each channel and multiplied
// by two sets of weights, which are zero where a result does not need the tap. Thread safe.
#ifndef SMELT_KERNELS_ISA_DEPTHWISE_INT8_H_
#define SMELT_KERNELS_ISA_DEPTHWISE_INT8_H_

#include <cstdint>
#include <span>
#include <vector>

#include "smelt/base/aligned_vector.h"
#include "smelt/kernels/isa/tile_int8.h"

namespace smelt {

constexpr int64_t kDepthwiseInt8Block = 64;  // channels of the widest register

// What is the same for all rows of an image.
struct DepthwiseInt8Layer {
  int64_t channels = 0;
  int groups = 0;                   // of four taps
  const int8_t* weights = nullptr;  // of DepthwiseInt8Weights
  // Numbers of channel c stand at DepthwiseInt8Place(c), in arrays of whole blocks. start: bias -
  // (128 + x_zero) * sum of the channel's weights, because the loop adds 128 to each pixel.
  const int32_t* start = nullptr;
  const float* scales = nullptr;
  // y = rint(clamp(sum * scale + zero, low, high)) + behind, a NaN as low + behind. It fits int8.
  float zero = 0, low = 0, high = 0;
  int16_t behind = 0;
  bool x_unsigned = false, y_unsigned = false;  // the bytes are 128 more than the numbers
  // In the place of that: SwishInt8Steps of the numbers, not of what is stored. y holds floats
  // where it has no bytes.
  bool swish = false;
  SwishInt8Steps steps;
};

// Pairs of one row. `taps` (groups * 4 pointers to pixels) belong to the first pair; those of the
// next lie `tap_step` bytes on. y0 and y1 are the results of the first pair, those of the next lie
// `y_step` elements on. Blocks [first_block, last_block) of channels are written.
struct DepthwiseInt8Run {
  const int8_t* const* taps = nullptr;
  int64_t pairs = 0;
  int64_t tap_step = 0, y_step = 0;
  void* y0 = nullptr;
  void* y1 = nullptr;
  int64_t first_block = 0, last_block = 0;
};

// Where channel c of `channels` stands: registers hold channels in the order in which the
// interleaving of bytes leaves them. Channels 4i to 4i + 3 stay together.
int64_t DepthwiseInt8Place(int64_t c, int64_t channels);

// Weights in the order of the loop. `taps`, [result][tap], holds for each of the two results and
// each tap a pointer to `channels` weights, or nullptr where the result does not need the tap.
AlignedVector<int8_t> DepthwiseInt8Weights(std::span<const int8_t* const> taps, int64_t channels);

// How many lanes of 16 channels the registers have for a block of which `left` channels are left.
int64_t DepthwiseInt8Lanes(int64_t left);

// REQUIRES: CpuHas(kDotBytes), and of x86 kX86V4 too (Int8IsNative).
void RunDepthwiseInt8(const DepthwiseInt8Layer& layer, const DepthwiseInt8Run& run);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_DEPTHWISE_INT8_H_
