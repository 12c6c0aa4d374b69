// Depthwise convolution of int8 pixels by dot products of four bytes (AVX512-VNNI).
//
// Two neighbouring results are made at once from the taps that either wants, four taps a step: the
// bytes of four pixels are laid side by side for each channel and multiplied by two sets of
// weights, which are zero where a result does not want the tap.
#ifndef SMELT_KERNELS_ISA_DEPTHWISE_INT8_H_
#define SMELT_KERNELS_ISA_DEPTHWISE_INT8_H_

#include <cstdint>
#include <span>
#include <vector>

namespace smelt {

constexpr int64_t kDepthwiseInt8Block = 64;  // channels of a register

// What is the same for all rows of an image.
struct DepthwiseInt8Layer {
  int64_t channels = 0;
  int groups = 0;                   // of four taps
  const int8_t* weights = nullptr;  // of DepthwiseInt8Weights
  // Of channel c at DepthwiseInt8Place(c), in whole blocks: bias - (128 + x_zero) * sum of its
  // weights, as pixels count from -128 here; and the scale.
  const int32_t* start = nullptr;
  const float* scales = nullptr;
  // y = rint(clamp(sum * scale + zero, low, high)), a NaN as low.
  float zero = 0, low = 0, high = 0;
};

// `taps` (groups * 4 pointers to pixels) belong to the first pair; those of the next lie `tap_step`
// bytes on. y0 and y1 are the results of the first pair, those of the next lie `y_step` on. Blocks
// [first_block, last_block) of channels are made.
struct DepthwiseInt8Run {
  const int8_t* const* taps = nullptr;
  int64_t pairs = 0;
  int64_t tap_step = 0, y_step = 0;
  int8_t* y0 = nullptr;
  int8_t* y1 = nullptr;
  int64_t first_block = 0, last_block = 0;
};

// Registers hold channels in the order that widening leaves them in. Four in a row stay so.
int64_t DepthwiseInt8Place(int64_t c, int64_t channels);

// Weights as the loop wants them. `taps` holds, for each of the two results and each tap, a pointer
// to the tap's `channels` weights, or nullptr: [result][tap], as many taps for both.
std::vector<int8_t> DepthwiseInt8Weights(std::span<const int8_t* const> taps, int64_t channels);

// REQUIRES: the processor has AVX512-VNNI (Int8IsNative).
void RunDepthwiseInt8(const DepthwiseInt8Layer& layer, const DepthwiseInt8Run& run);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_DEPTHWISE_INT8_H_
