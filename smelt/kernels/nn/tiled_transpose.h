// Transposed convolutions of floats in tiles of our own: pixels of the result that are a stride
// apart are a convolution of the smaller image by a part of the window's taps.
#ifndef SMELT_KERNELS_NN_TILED_TRANSPOSE_H_
#define SMELT_KERNELS_NN_TILED_TRANSPOSE_H_

#include <memory>
#include <variant>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/common/constant_forms.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

// What a node keeps for it: weights as the tiles read them. Thread safe.
class TiledTranspose {
 public:
  // Is this the way for the problem on this processor? `p` is the convolution whose transpose is
  // meant: its output is the smaller image.
  static bool Suits(const ConvProblem& p);

  // The transposed convolution of the node's input `image`, and `fused`, as a bound kernel.
  // `filter`: its constant values, [spatial..., depth of the result, depth of the smaller image];
  // `bias`: what the first step adds where that is a bias; `addend`: the node's input that a sum
  // adds. nullptr where the steps are others. REQUIRES: Suits; the filter is finite: zeros beside
  // the image are multiplied.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const ConvProblem& p, const Tensor& filter, int image,
                                              const float* bias, int addend, const FusedOps& fused);

 private:
  ConstantForms<std::monostate> packed_;
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_TILED_TRANSPOSE_H_
