// Kernels that do what follows them in the same pass: a bias, a sum, an activation.
#ifndef SMELT_KERNELS_FUSIBLE_H_
#define SMELT_KERNELS_FUSIBLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/op_context.h"

namespace smelt {

// The way of a float result to int8: rint(clamp(v / scale + zero, low, high)), a NaN as low. An
// operand of the steps that is summed whole may be int8 as well: (x - addend_zero) * addend_scale.
struct QuantizedResult {
  float scale = 1, zero = 0, low = -128, high = 127;
  float addend_scale = 1;
  int32_t addend_zero = 0;
  Dtype stored = Dtype::kInt8;  // or kUint8 (unsigned_int8.h)
};

class FusibleState : public KernelState {
 public:
  // The kernel, and `then` done to its result, whose arguments are the inputs after the node's own:
  // a bias has as many elements as the result's last dimensions that it goes along, a sum's operand
  // as many as the result. nullptr where one kernel cannot do all of it.
  virtual StatusOr<std::unique_ptr<BoundKernel>> BindThen(const BindContext& context,
                                                          const FusedOps& then) = 0;
  // May BindQuantized do more than nothing?
  virtual bool may_quantize() const { return false; }
  // The same with an int8 result.
  virtual StatusOr<std::unique_ptr<BoundKernel>> BindQuantized(const BindContext& /*context*/,
                                                               const FusedOps& /*then*/,
                                                               const QuantizedResult& /*result*/) {
    return nullptr;
  }
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) final {
    return BindThen(context, FusedOps());
  }
};

// May the steps be joined? There is one slope for all of them: FusedOps has one, and oneDNN
// computes every relu of a layer as the first. That of Relu is zero.
bool SlopesAgree(const FusedOps& own, const FusedOps& then);

// The steps of a node, then those of `then`, and the inputs that they take, under shapes that
// nn::CheckFusedArgs accepts for a result of shape `output` if they have as many elements.
struct JoinedSteps {
  FusedOps ops;
  std::vector<BoundTensor> inputs;
};
JoinedSteps JoinSteps(const FusedOps& own, const FusedOps& then, const BindContext& context,
                      const Shape& output);

}  // namespace smelt

#endif  // SMELT_KERNELS_FUSIBLE_H_
