// When what a kernel pads by zeros may be left out of its sums.
#ifndef SMELT_COMPILE_ZERO_WEIGHTS_H_
#define SMELT_COMPILE_ZERO_WEIGHTS_H_

#include <algorithm>
#include <cmath>

#include "smelt/compile/plan.h"

namespace smelt {

// Are products of zeros and the action's weights, if it has any, zeros? Then it is the same to
// leave them out.
inline bool KeepsZeros(const Plan& plan, const PlanAction& action) {
  const Tensor* weights = action.inputs.size() < 2 ? nullptr : plan.ConstantOf(action.inputs[1]);
  if (weights == nullptr || weights->dtype() != Dtype::kFloat) return true;
  return std::ranges::all_of(weights->flat<float>(), [](float w) { return std::isfinite(w); });
}

}  // namespace smelt

#endif  // SMELT_COMPILE_ZERO_WEIGHTS_H_
