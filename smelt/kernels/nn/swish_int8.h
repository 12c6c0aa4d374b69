// Convolutions with windows of one pixel, and products, of unsigned bytes and int8 weights, with
// x * sigmoid(x) behind them: the library takes twice our time for that.
#ifndef SMELT_KERNELS_NN_SWISH_INT8_H_
#define SMELT_KERNELS_NN_SWISH_INT8_H_

#include <memory>
#include <span>
#include <vector>

#include "smelt/base/aligned_vector.h"
#include "smelt/kernels/isa/tile_int8.h"
#include "smelt/tensor/tensor.h"

namespace smelt::nn {

// Rows of bytes times a matrix. Immutable, so thread safe.
class SwishInt8 {
 public:
  // `weights`: [depth, channels], or [channels, depth] where `transposed`, of which nothing is
  // kept. x_zero: what stands for zero among the bytes. One scale, or one for each channel.
  // REQUIRES: depth % 4 == 0, depth and channels > 0.
  SwishInt8(const int8_t* weights, bool transposed, int64_t depth, int64_t channels,
            std::span<const float> scales, const int32_t* bias, int32_t x_zero);

  // Where the rows lie: `columns` of them `step` bytes apart, then again so many a `line` further
  // on, `image_lines` times, and all that `images` times, an `image` apart.
  struct Rows {
    int64_t images = 1, image_lines = 1, columns = 1;
    int64_t image = 0, line = 0, step = 0;
    int64_t count() const { return images * image_lines * columns; }
  };
  // y[r, c] = steps(sum of (x[r, k] - x_zero) * weights[k, c] + bias[c]), in parallel.
  // REQUIRES: Int8IsNative().
  void Run(const Rows& rows, const uint8_t* x, const SwishInt8Steps& steps, void* y) const;

 private:
  int64_t depth_, channels_;
  // Blocks of vectors, each laid out as a tile wants it.
  AlignedVector<int8_t> weights_;
  // By channel, in whole vectors.
  std::vector<int32_t> start_;
  std::vector<float> scales_;
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_SWISH_INT8_H_
