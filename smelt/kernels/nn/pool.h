// Pooling over windows of an image: geometry, and plain loops.
#ifndef SMELT_KERNELS_NN_POOL_H_
#define SMELT_KERNELS_NN_POOL_H_

#include <algorithm>

#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

enum class PoolKind : uint8_t { kMax, kAvg };

// Attributes of a pool; ksize and strides have one entry per dimension, batch and depth included.
struct PoolAttrs {
  PoolKind kind = PoolKind::kMax;
  int spatial = 2;
  bool channels_last = true;
  Padding padding = Padding::kValid;
  std::vector<int64_t> ksize, strides;
  std::vector<int64_t> explicit_pads;
  bool with_argmax = false;
  bool gradient = false;
};
// ksize and strides are read from the node unless it takes them as inputs (MaxPoolV2
// and its gradients).
StatusOr<PoolAttrs> ParsePoolAttrs(const Node& node, PoolKind kind, int spatial);
// In TensorFlow's words, and in its order: ksize and strides have one entry per dimension, nothing
// pools over the batch (nor in three dimensions over the depth), and ksize is positive
// (CheckPoolSizes). Gradients call CheckPoolSizes themselves, after checks of their own.
Status CheckPoolWindow(const PoolAttrs& attrs);
Status CheckPoolSizes(const PoolAttrs& attrs);

struct PoolProblem {
  bool channels_last = true;
  int64_t batch = 0, depth = 0;
  Dims in, out, kernel, strides, pad_before, pad_after;  // spatial
  int64_t depth_window = 1;  // over 1: pools over groups of that many channels, not over space
  Shape output;
};
// INVALID_ARGUMENT or UNIMPLEMENTED, in TensorFlow's words. A stride along the depth is not looked
// at where the window there is 1. REQUIRES: CheckPoolWindow.
StatusOr<PoolProblem> MakePoolProblem(const PoolAttrs& attrs, const Shape& input);

// A pool over three spatial dimensions, the missing ones of size one.
struct PoolView {
  int64_t in[3], out[3], kernel[3], stride[3], pad[3];
  explicit PoolView(const PoolProblem& p) {
    const int missing = 3 - static_cast<int>(p.in.size());
    for (int i = 0; i < 3; ++i) {
      const int j = i - missing;
      in[i] = j < 0 ? 1 : p.in[j];
      out[i] = j < 0 ? 1 : p.out[j];
      kernel[i] = j < 0 ? 1 : p.kernel[j];
      stride[i] = j < 0 ? 1 : p.strides[j];
      pad[i] = j < 0 ? 0 : p.pad_before[j];
    }
  }
  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  // Input pixels of the largest window.
  int64_t taps() const {
    return std::min(kernel[0], in[0]) * std::min(kernel[1], in[1]) * std::min(kernel[2], in[2]);
  }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }

  struct Range {
    int64_t from, to;
  };
  // What of the window of output pixel `at` along dimension d lies inside of the input.
  Range Inside(int d, int64_t at) const {
    const int64_t start = at * stride[d] - pad[d];
    return {std::max<int64_t>(start, 0), std::min(start + kernel[d], in[d])};
  }
  // The output pixels along dimension d whose windows lie inside as a whole.
  Range Whole(int d) const {
    const int64_t from = std::min((pad[d] + stride[d] - 1) / stride[d], out[d]);
    const int64_t last = in[d] + pad[d] - kernel[d];
    return {from, std::clamp(last < 0 ? 0 : last / stride[d] + 1, from, out[d])};
  }

  // Calls fn(pixel number) for the input pixels of an output pixel's window, in order.
  template <typename F>
  void ForWindow(int64_t out_pixel, F fn) const {
    const Range planes = Inside(0, out_pixel / (out[1] * out[2]));
    const Range lines = Inside(1, out_pixel / out[2] % out[1]);
    const Range columns = Inside(2, out_pixel % out[2]);
    for (int64_t d = planes.from; d < planes.to; ++d) {
      for (int64_t h = lines.from; h < lines.to; ++h) {
        for (int64_t w = columns.from; w < columns.to; ++w) fn((d * in[1] + h) * in[2] + w);
      }
    }
  }
};

// REQUIRES: x and y are numbers of `dtype` and of the problem's shapes; no 16-bit float type;
// averages of float or double only.
void PoolReference(PoolKind kind, const PoolProblem& p, Dtype dtype, const void* x, void* y);

// Maxima, and for each the flat index of the first element that holds it: within its image or, with
// `batch_in_index`, within the batch. REQUIRES: channels last, two spatial dimensions; argmax int32
// or int64.
void MaxPoolArgmax(const PoolProblem& p, bool batch_in_index, const Tensor& input, Tensor* output,
                   Tensor* argmax);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_POOL_H_
