// A graph of floats as its plan has it in integers.
#ifndef SMELT_LITE_QUANTIZE_INTEGER_REWRITE_H_
#define SMELT_LITE_QUANTIZE_INTEGER_REWRITE_H_

#include <span>

#include "smelt/lite/quantize/integer_plan.h"

namespace smelt {

// Operators of the plan read and give integers; a QUANTIZE or DEQUANTIZE stands where others give
// or want floats, and a QUANTIZE where readers take another scale. INVALID_ARGUMENT names a
// constant that is not finite. REQUIRES: plan.Make(graph, order).
Status RewriteToIntegers(Graph& graph, std::span<Node* const> order, IntegerPlan& plan);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_INTEGER_REWRITE_H_
