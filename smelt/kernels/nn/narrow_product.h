// Products of rows of bfloat16 by constants in tiles of our own: what the library is slow at are
// short sums, whose results it writes as if they were long ones.
#ifndef SMELT_KERNELS_NN_NARROW_PRODUCT_H_
#define SMELT_KERNELS_NN_NARROW_PRODUCT_H_

#include <memory>
#include <span>
#include <variant>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/common/constant_forms.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

// What a node keeps for it: weights as the tiles read them. Thread safe.
class NarrowProduct {
 public:
  // Is this the way for the convolution, whose windows are of one pixel, on this processor?
  static bool Suits(const ConvProblem& p);

  // The convolution of bfloat16 and `fused` as a bound kernel; as TiledConv::Bind. nullptr where
  // what follows is more than a bias, a sum and a clamp. REQUIRES: Suits.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const ConvProblem& p, const Tensor& filter,
                                              std::span<const float> factors, const float* bias,
                                              int addend, const FusedOps& fused);

 private:
  ConstantForms<std::monostate> packed_;
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_NARROW_PRODUCT_H_
