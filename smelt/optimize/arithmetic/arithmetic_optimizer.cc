// TensorFlow's arithmetic_optimizer: its rules in TensorFlow's order.
#include "smelt/optimize/arithmetic/rules.h"

namespace smelt {
namespace {

using namespace arithmetic;

constexpr const Rule* kRules[] = {
    &kAddOpsRewrite,
    &kFoldConjugateIntoTranspose,
    &kFoldMultiplyIntoConv,
    &kFoldTransposeIntoMatMul,
    &kHoistCommonFactor,
    &kMinimizeBroadcasts,
    &kRemoveIdentityTranspose,
    &kRemoveInvolution,
    &kRemoveRedundantBitcast,
    &kRemoveRedundantCast,
    &kReplacePackWithTileReshape,
    &kReplaceMulWithBroadcastByTile,
    &kReduceUpsamplingDims,
    &kRemoveRedundantReshapeOrBroadcastTo,
    &kRemoveNegation,
    &kReplaceMulWithSquare,
    &kRemoveLogicalNot,
    &kReorderCastLikeAndValuePreserving,
    &kSimplifyAggregation,
    &kHoistCWiseUnaryChains,
    &kSqrtDivToRsqrtMul,
    &kRemoveIdempotent,
    &kConvertPow,
    &kConvertLog1p,
    &kLogSoftmax,
    &kOptimizeMaxOrMinOfMonotonic,
    &kConvertExpm1,
    &kUnaryOpsComposition,
    &kRemoveStackSliceSameAxis,
    &kSimplifyEmbeddingLookup,
    &kRemoveCastIntoSegmentReduction,
    &kFuseSquaredDiff,
};

}  // namespace

Status OptimizeArithmetic(Graph& graph, const PassContext& context) {
  return RunRules(kRules, "ArithmeticOptimizer", context.config.arithmetic_optimization, graph,
                  context);
}

}  // namespace smelt
