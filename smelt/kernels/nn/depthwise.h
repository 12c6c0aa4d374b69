// Depthwise convolution of floats and of bfloat16 in loops of our own.
#ifndef SMELT_KERNELS_NN_DEPTHWISE_H_
#define SMELT_KERNELS_NN_DEPTHWISE_H_

#include <memory>
#include <span>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

// The convolution and `fused` as a bound kernel of the filter's type; bfloat16 is computed in
// float and rounded once. `filter`: its constant values, each of channel c
// times factors[c] where there are factors. `bias`: what the first step adds where that is a bias;
// nullptr where it is no constant. nullptr where these loops do not do it all: channels that lie
// innermost and give results of a vector at least, then a bias and an activation.
StatusOr<std::unique_ptr<BoundKernel>> BindDepthwise(const ConvProblem& p, const Tensor& filter,
                                                     std::span<const float> factors,
                                                     const float* bias, const FusedOps& fused);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_DEPTHWISE_H_
