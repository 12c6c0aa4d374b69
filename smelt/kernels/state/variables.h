// What the ops on variables share: finding the variable behind an input, and its arithmetic.
#ifndef SMELT_KERNELS_STATE_VARIABLES_H_
#define SMELT_KERNELS_STATE_VARIABLES_H_

#include <memory>

#include "smelt/kernels/kernel.h"

namespace smelt {

// The variable whose handle is input i. A handle that is only a name is looked up in the step's
// resources. NOT_FOUND, in TensorFlow's words, when there is none; INVALID_ARGUMENT for another
// kind of resource.
StatusOr<std::shared_ptr<Variable>> FindVariable(const OpContext& ctx, int i);

// "Resource localhost/v/N10tensorflow3VarE does not exist.": an uninitialised resource variable is
// one that does not exist.
Status NoVariable(absl::string_view container, absl::string_view name);

// The error of changing variable i of this node before its first assignment: NOT_FOUND as above for
// resource variables, FAILED_PRECONDITION for reference variables.
Status UninitializedVariable(const OpContext& ctx, int i);

// Ref kernels answer with the handle they are given.
inline void ForwardRef(OpContext& ctx) {
  if (ctx.num_outputs() > 0 && IsRef(ctx.output_type(0))) ctx.set_output(0, ctx.TakeInput(0));
}

enum class UpdateKind : uint8_t { kSet, kAdd, kSub, kMul, kDiv, kMin, kMax };

// params[i] = params[i] OP updates[i * step] for i in [0, n); step is 0 (one value for all) or 1.
// Types of kNumberTypes; bool adds as "or". kSet takes every type. Integers wrap.
// REQUIRES: integer divisors are not 0; no kMin, kMax of complex numbers.
void ApplyUpdate(UpdateKind kind, Dtype dtype, void* params, const void* updates, int64_t n,
                 int64_t step);

// Does an integer tensor hold a 0?
bool HasIntegerZero(const Tensor& t);

// "indices[1,0]": where element i of a tensor of this shape stands.
std::string IndexText(const Shape& shape, int64_t i);

}  // namespace smelt

#endif  // SMELT_KERNELS_STATE_VARIABLES_H_
