// Depthwise convolution of int8 images, over rows and in parallel.
#ifndef SMELT_KERNELS_NN_DEPTHWISE_INT8_H_
#define SMELT_KERNELS_NN_DEPTHWISE_INT8_H_

#include <memory>
#include <span>
#include <vector>

#include "smelt/base/aligned_vector.h"
#include "smelt/kernels/isa/tile_int8.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

// Has p the form that DepthwiseInt8 computes: one result channel for each channel, two spatial
// dimensions, and enough channels to fill registers?
bool IsDepthwiseInt8(const ConvProblem& p);

// A layer's weights, laid out for one window. Immutable, so thread safe.
class DepthwiseInt8 {
 public:
  // What becomes of a product v: rint(clamp(v + zero, low, high)) + behind, which fits int8.
  struct Ends {
    float zero = 0, low = 0, high = 0;
    int16_t behind = 0;
  };
  // `weights` as TensorFlow has them, int8 [height, width, 1, channels], of which nothing is kept.
  // One scale, or one per channel. REQUIRES: IsDepthwiseInt8(p).
  DepthwiseInt8(const ConvProblem& p, const Tensor& weights, std::span<const float> scales,
                int32_t x_zero, const Ends& ends);

  // out = Ends of (sum of (x - x_zero) * weights + bias) * scale, padding is x_zero.
  // p may differ from the constructor's in batch and image sizes.
  // REQUIRES: Int8IsNative().
  Status Run(const ConvProblem& p, const int8_t* x, const int32_t* bias, int8_t* out,
             Allocator* allocator) const;
  // Which images are stored unsigned (kernels/unsigned_int8.h).
  struct Stored {
    bool x_unsigned = false, out_unsigned = false;
  };
  // The same in two steps: what the sums of a layer with this bias start with, once; then runs,
  // with padding_bytes(p) bytes of any contents.
  // `bias` may be nullptr.
  std::vector<int32_t> StartOf(const int32_t* bias, int64_t channels) const;
  // `swish`: not nullptr: what is done in the place of scaling and clamping; `low` and `zero` are
  // those of int8 numbers, however they are stored.
  void Run(const ConvProblem& p, const void* x, const int32_t* start, void* out, int8_t* padding,
           Stored stored, const SwishInt8Steps* swish = nullptr) const;
  static size_t padding_bytes(const ConvProblem& p) {
    return static_cast<size_t>(p.in[1] * p.in_depth);
  }

 private:
  struct Tap {
    int64_t row, column;  // in pixels from the window's corner
  };
  std::vector<Tap> taps_;  // a multiple of four
  int64_t span_ = 0;       // columns that two neighboring results read
  AlignedVector<int8_t> weights_;
  // By DepthwiseInt8Place, in whole blocks.
  std::vector<int32_t> offsets_;  // -(128 + x_zero) * sum of weights
  std::vector<float> scales_;
  int32_t x_zero_;
  Ends ends_;
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_DEPTHWISE_INT8_H_
