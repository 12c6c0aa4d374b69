// Pooling over windows of an image: geometry, and plain loops.
#ifndef SMELT_KERNELS_NN_POOL_H_
#define SMELT_KERNELS_NN_POOL_H_

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
};
// ksize and strides are read from the node unless it takes them as inputs (MaxPoolV2).
StatusOr<PoolAttrs> ParsePoolAttrs(const Node& node, PoolKind kind, int spatial);
// The entries of ksize and strides themselves.
Status CheckPoolWindow(const PoolAttrs& attrs);

struct PoolProblem {
  bool channels_last = true;
  int64_t batch = 0, depth = 0;
  Dims in, out, kernel, strides, pad_before, pad_after;  // spatial
  int64_t depth_window = 1;  // over 1: pools over groups of that many channels, not over space
  Shape output;
};
StatusOr<PoolProblem> MakePoolProblem(const PoolAttrs& attrs, const Shape& input);

// REQUIRES: tensors of one number type and of the problem's shapes; not of a 16-bit float type;
// averages of float or double only.
void PoolReference(PoolKind kind, const PoolProblem& p, const Tensor& input, Tensor* output);

// Maxima and where they stand: the position within the image (or within the batch of images) of the
// first maximum. REQUIRES: channels last, two spatial dimensions; argmax int32 or int64.
void MaxPoolArgmax(const PoolProblem& p, bool batch_in_index, const Tensor& input, Tensor* output,
                   Tensor* argmax);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_POOL_H_
