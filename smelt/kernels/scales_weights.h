// Kernels whose result can be multiplied, channel by channel, by scaling their constant weights.
#ifndef SMELT_KERNELS_SCALES_WEIGHTS_H_
#define SMELT_KERNELS_SCALES_WEIGHTS_H_

#include "smelt/kernels/op_context.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// A KernelState may be one.
class ScalesWeights {
 public:
  virtual ~ScalesWeights() = default;
  // How many numbers of the result's last dimension have weights of their own, in the order of the
  // weights' last dimensions, where `weights` is the node's input 1; 0: the result is no product
  // with them alone, or has no such dimension.
  virtual int64_t ScaledChannels(const Tensor& weights) const = 0;
  // `weights` times `factors`, of so many numbers. Made once for the same operands. Thread safe.
  virtual StatusOr<Tensor> Scaled(const Tensor& weights, const Tensor& factors) const = 0;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_SCALES_WEIGHTS_H_
