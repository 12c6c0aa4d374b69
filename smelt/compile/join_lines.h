// Layers that make an image line by line become one action where what lies between them would
// leave a core's cache.
#ifndef SMELT_COMPILE_JOIN_LINES_H_
#define SMELT_COMPILE_JOIN_LINES_H_

#include "smelt/compile/plan.h"

namespace smelt {

// Joins actions whose kernels make lines (kernels/line_kernel.h), each of which alone reads what
// the one before makes: an inverted residual block, from the products that widen an image to those
// that narrow it, is one pass. Comes after BindActions.
void JoinLines(Plan& plan, Reasons* reasons);

// For tests: from now on lines are joined wherever they can be, whatever caches are like. Any
// thread.
void JoinAllLines(bool all);

}  // namespace smelt

#endif  // SMELT_COMPILE_JOIN_LINES_H_
