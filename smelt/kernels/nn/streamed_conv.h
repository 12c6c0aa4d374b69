// Convolutions of floats whose weights are more than a core's cache holds and whose pixels are few:
// what they take is waiting for weights. Each core's part of the weights goes by once, and the next
// block of it is fetched while one is multiplied with all pixels. Pixels whose windows reach beside
// the image in the same way are neighbors, so that taps that are zeros for all of a tile cost
// nothing.
#ifndef SMELT_KERNELS_NN_STREAMED_CONV_H_
#define SMELT_KERNELS_NN_STREAMED_CONV_H_

#include <memory>
#include <span>
#include <variant>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/common/constant_forms.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

// What a node keeps for it: weights as the tiles read them. Thread safe.
class StreamedConv {
 public:
  // Is this the way for the problem on this processor?
  static bool Suits(const ConvProblem& p);

  // As TiledConv::Bind; nullptr where the steps are others. REQUIRES: Suits; filter and factors are
  // finite where the image is padded, whose zeros are multiplied.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const ConvProblem& p, const Tensor& filter,
                                              std::span<const float> factors, const float* bias,
                                              int addend, const FusedOps& fused);

 private:
  using Forms = ConstantForms<std::monostate>;
  const std::shared_ptr<Forms> packed_ = std::make_shared<Forms>();
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_STREAMED_CONV_H_
