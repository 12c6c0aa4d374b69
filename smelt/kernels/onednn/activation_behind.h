// Activations of bfloat16 layers behind the layer: the library computes exponentials at a fraction
// of the pace of our own loops.
#ifndef SMELT_KERNELS_ONEDNN_ACTIVATION_BEHIND_H_
#define SMELT_KERNELS_ONEDNN_ACTIVATION_BEHIND_H_

#include <memory>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/onednn/keep_nan.h"

namespace smelt::onednn {

// Do the steps end in an activation that computes an exponential?
bool EndsInExponential(const FusedOps& ops);

// `layer`, which lacks the last of the steps, and that activation of its `results` values of
// bfloat16. The layer's result is rounded in between, as TensorFlow's is.
// REQUIRES: EndsInExponential(ops).
std::unique_ptr<BoundKernel> ActivationBehind(std::unique_ptr<BoundKernel> layer,
                                              const FusedOps& ops, int64_t results);

// What bind(steps) makes of a layer of bfloat16, nullptr or not: of all steps, or of those before
// an exponential, which comes behind it.
template <typename Bind>
StatusOr<std::unique_ptr<BoundKernel>> BindBeforeExponential(const FusedOps& ops, int64_t results,
                                                             const Bind& bind) {
  if (!EndsInExponential(ops)) return bind(ops);
  ASSIGN_OR_RETURN(std::unique_ptr<BoundKernel> layer,
                   bind(StepsBefore(ops, ops.steps.size() - 1)));
  if (layer == nullptr) return layer;
  return ActivationBehind(std::move(layer), ops, results);
}

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_ACTIVATION_BEHIND_H_
