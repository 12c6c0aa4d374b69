// Convolutions of floats in tiles of our own (ConvTile), with what follows done while a tile is
// in registers or in the nearest cache.
#ifndef SMELT_KERNELS_NN_TILED_CONV_H_
#define SMELT_KERNELS_NN_TILED_CONV_H_

#include <memory>
#include <span>
#include <variant>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/common/constant_forms.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

// What a node keeps for its tiled convolutions: weights as the tiles read them. Thread safe.
class TiledConv {
 public:
  // The convolution and `fused` as a bound kernel. `filter`: its constant values, those of channel
  // c times factors[c] where there are factors, which are the same on each call. `bias`: what the
  // first step adds where that is a bias; nullptr where it is no constant. `addend`: the node's
  // input that a sum adds. nullptr where tiles do not do it all: one group, channels that lie
  // innermost; then a bias, a sum and an activation.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const ConvProblem& p, const Tensor& filter,
                                              std::span<const float> factors, const float* bias,
                                              int addend, const FusedOps& fused);

 private:
  ConstantForms<std::monostate> packed_;
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_TILED_CONV_H_
