// Values as they lie in other values: what transposes, reshapes and slices come to when the one who
// reads can step.
#ifndef SMELT_COMPILE_STRIDED_VIEW_H_
#define SMELT_COMPILE_STRIDED_VIEW_H_

#include <optional>
#include <span>
#include <vector>

#include "smelt/compile/plan.h"

namespace smelt {

struct StridedView {
  int value = -1;               // whose bytes are read, row-major without gaps
  int64_t first = 0;            // element
  Dims dims, steps;             // steps in elements
  float scale = 1;              // what each element is to be multiplied by
  std::vector<size_t> actions;  // that reading the view makes unnecessary for this reader
};

// `value` under its own shape, traced back through actions before `before`. `scales`: through
// products with a number as well.
StridedView ViewOf(const Plan& plan, int value, size_t before, bool scales);

// The order of a Transpose's dimensions, if it is constant. Empty: it is none.
Dims TransposeOrder(const Plan& plan, const PlanAction& action);
// The element of a constant of float or bfloat16 that has one.
std::optional<float> ConstantNumber(const Plan& plan, int value);

}  // namespace smelt

#endif  // SMELT_COMPILE_STRIDED_VIEW_H_
