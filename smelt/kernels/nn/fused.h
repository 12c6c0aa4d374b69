// What a fused node does to the result of its convolution or matrix product: the attribute
// fused_ops, e.g. ["BiasAdd", "Add", "Relu"], and the arguments that go with it.
#ifndef SMELT_KERNELS_NN_FUSED_H_
#define SMELT_KERNELS_NN_FUSED_H_

#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "smelt/graph/graph.h"
#include "smelt/tensor/tensor.h"

namespace smelt::nn {

enum class Activation : uint8_t {
  kRelu,
  kRelu6,
  kElu,
  kLeakyRelu,
  kTanh,
  kSigmoid,
  kGeluExact,
  kGeluApproximate,
  kSilu,
  kHardSwish,
};

struct FusedStep {
  enum class Kind : uint8_t {
    kBias,       // one argument [depth]
    kBatchNorm,  // four: scale, offset, mean, variance, each [depth]
    kAdd,        // one of the result's shape
    kActivation,
  };
  Kind kind = Kind::kActivation;
  Activation activation = Activation::kRelu;
  int arg = 0;  // position of its first argument
};

struct FusedOps {
  std::vector<FusedStep> steps;
  int num_args = 0;
  float epsilon = 0;
  float leaky_alpha = 0.2f;

  bool empty() const { return steps.empty(); }
};

// The arguments of one call.
using FusedArgs = std::span<const Tensor* const>;

// From attributes fused_ops, num_args, epsilon and leakyrelu_alpha. `what` names the op in errors.
StatusOr<FusedOps> ParseFusedOps(const Node& node, absl::string_view what);

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
