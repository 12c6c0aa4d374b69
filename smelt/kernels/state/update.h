// The arithmetic that changes variables in place. Any thread; the caller has the variable locked.
#ifndef SMELT_KERNELS_STATE_UPDATE_H_
#define SMELT_KERNELS_STATE_UPDATE_H_

#include "smelt/tensor/tensor.h"

namespace smelt {

enum class UpdateKind : uint8_t { kSet, kAdd, kSub, kMul, kDiv, kMin, kMax };

// params[i] = params[i] OP updates[i * step] for i in [0, n); step is 0 (one value for all) or 1.
// Types of kNumberTypes; bool adds as "or". kSet takes every type. Integers wrap.
// REQUIRES: integer divisors are not 0; no kMin, kMax of complex numbers.
void ApplyUpdate(UpdateKind kind, Dtype dtype, void* params, const void* updates, int64_t n,
                 int64_t step);

// Whether a tensor of numbers holds a 0.
bool HasZero(const Tensor& t);

}  // namespace smelt

#endif  // SMELT_KERNELS_STATE_UPDATE_H_
