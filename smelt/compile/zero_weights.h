// When what a kernel pads by zeros may be left out of its sums.
#ifndef SMELT_COMPILE_ZERO_WEIGHTS_H_
#define SMELT_COMPILE_ZERO_WEIGHTS_H_

#include <algorithm>
#include <cmath>

#include "smelt/compile/plan.h"

namespace smelt {

// Are products of zeros and the action's weights, if it has any, zeros? Then it is the same to
// leave them out. Not of weights that are computed: they may be infinite, or NaN.
inline bool KeepsZeros(const Plan& plan, const PlanAction& action) {
  if (action.node->num_inputs() < 2) return true;
  const int value = action.inputs[1];
  constexpr DtypeSet kHaveInfinity =
      Types(Dtype::kFloat, Dtype::kBfloat16, Dtype::kHalf, Dtype::kDouble);
  if (!Has(kHaveInfinity, plan.values[static_cast<size_t>(value)].dtype)) return true;
  const Tensor* weights = plan.ConstantOf(value);
  const auto all_finite = [&]<typename T>() {
    return std::ranges::all_of(weights->flat<T>(),
                               [](T w) { return std::isfinite(static_cast<float>(w)); });
  };
  if (weights == nullptr) return false;
  switch (weights->dtype()) {
    case Dtype::kFloat:
      return all_finite.template operator()<float>();
    case Dtype::kBfloat16:
      return all_finite.template operator()<Bfloat16>();
    case Dtype::kHalf:
      return all_finite.template operator()<Half>();
    default:
      return false;
  }
}

}  // namespace smelt

#endif  // SMELT_COMPILE_ZERO_WEIGHTS_H_
