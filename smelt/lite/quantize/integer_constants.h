// Constant operands of operators that compute in integers.
#ifndef SMELT_LITE_QUANTIZE_INTEGER_CONSTANTS_H_
#define SMELT_LITE_QUANTIZE_INTEGER_CONSTANTS_H_

#include <vector>

#include "smelt/lite/quantize/integer_plan.h"

namespace smelt {

// No scale has infinities and NaN beside others; what is below all of a known range saturates.
// INVALID_ARGUMENT names the constant and `n`, which reads it.
Status CheckFinite(const Node& n, const Node& constant, const Tensor& value,
                   bool has_range = false);

// A constant operand `of`, by its own range, or by the params that it must have.
StatusOr<Endpoint> QuantizedConstant(Graph& graph, const IntegerPlan& plan, const Node& n,
                                     Endpoint of, const Tensor& value, const Params* forced);

struct ScaledWeights {
  Endpoint values;
  std::vector<float> scales;
};
// INVALID_ARGUMENT names the operator and the constant, where that is not finite.
StatusOr<ScaledWeights> WeightsOf(Graph& graph, IntegerPlan& plan, const Node& n,
                                  const Node& constant, const Tensor& value);

// Biases have the scales of what they are added to: `input_scale` times those of the weights.
StatusOr<Endpoint> QuantizedBias(Graph& graph, const IntegerFlags& flags, const Node& n,
                                 const Tensor& bias, float input_scale,
                                 const std::vector<float>& weights);
Dtype BiasType(const Node& n, const IntegerFlags& flags);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_INTEGER_CONSTANTS_H_
