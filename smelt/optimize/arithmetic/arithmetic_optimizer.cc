// TensorFlow's arithmetic_optimizer: its rules in TensorFlow's order.
#include "smelt/optimize/arithmetic/rules.h"

namespace smelt {
namespace {

using namespace arithmetic;

constexpr const Rule* kRules[] = {
    &kRemoveInvolution,  &kRemoveNegation,   &kReplaceMulWithSquare, &kRemoveLogicalNot,
    &kSqrtDivToRsqrtMul, &kRemoveIdempotent, &kConvertPow,           &kConvertLog1p,
    &kLogSoftmax,        &kConvertExpm1,     &kFuseSquaredDiff,
};

}  // namespace

Status OptimizeArithmetic(Graph& graph, const PassContext& context) {
  return RunRules(kRules, "ArithmeticOptimizer", graph, context);
}

}  // namespace smelt
