// Doing what a fused node says (graph/fused_ops.h) to the result of its convolution or matrix
// product, with the arguments that go with it.
#ifndef SMELT_KERNELS_NN_FUSED_H_
#define SMELT_KERNELS_NN_FUSED_H_

#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "smelt/graph/fused_ops.h"
#include "smelt/tensor/tensor.h"

namespace smelt::nn {

// The arguments of one call.
using FusedArgs = std::span<const Tensor* const>;

// Shapes of the arguments for a result of `shape`, whose depth is dimension `depth_dim`.
Status CheckFusedArgs(const FusedOps& fused, FusedArgs args, const Shape& shape, int depth_dim);

// Makes 16-bit arguments float: all, or all but those that are added whole. What is new lies in
// `wide`, one per argument.
using WidenedArgs = absl::InlinedVector<const Tensor*, 6>;
Status WidenFusedArgs(const FusedOps& fused, bool whole_too, std::vector<Tensor>* wide,
                      WidenedArgs* args, Allocator* allocator);

// Does the steps in place. REQUIRES: CheckFusedArgs; arguments and result of one type: float or
// double.
void ApplyFusedOps(const FusedOps& fused, FusedArgs args, int depth_dim, Tensor* result);

// Batch normalisation as y = x * scale + shift. Float arguments [depth].
void FoldBatchNorm(const FusedOps& fused, FusedArgs four, float* scale, float* shift);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_FUSED_H_
