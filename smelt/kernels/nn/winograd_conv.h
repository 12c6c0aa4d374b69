// Convolutions of floats with windows of 3x3 by Winograd's minimal filtering, whose products are
// 2.25 times fewer. Sums are rounded otherwise than those of plain loops: by some units of the last
// place of what a window's terms are.
#ifndef SMELT_KERNELS_NN_WINOGRAD_CONV_H_
#define SMELT_KERNELS_NN_WINOGRAD_CONV_H_

#include <memory>
#include <span>
#include <variant>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/common/constant_forms.h"
#include "smelt/kernels/common/run_instead.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

// What a node keeps for them. Thread safe.
class WinogradConv {
 public:
  // Is this the way for the problem on this processor?
  static bool Suits(const ConvProblem& p);

  // As TiledConv::Bind. What `plain` makes, which computes the same in another way, runs where the
  // input has numbers that are not modest (AllModest): of those a pixel would show more than its
  // window sees. nullptr where the steps are others. REQUIRES: Suits; filter and factors are
  // modest.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const ConvProblem& p, const Tensor& filter,
                                              std::span<const float> factors, const float* bias,
                                              int addend, const FusedOps& fused, MakeBound plain);

 private:
  ConstantForms<std::monostate> terms_;
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_WINOGRAD_CONV_H_
