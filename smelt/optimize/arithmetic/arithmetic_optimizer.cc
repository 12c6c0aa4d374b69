// TensorFlow's arithmetic_optimizer: its rules in TensorFlow's order.
#include "smelt/optimize/arithmetic/rules.h"

namespace smelt {
namespace {

using namespace arithmetic;

constexpr const Rule* kRules[] = {
    &kFoldConjugateIntoTranspose,
    &kFoldMultiplyIntoConv,
    &kFoldTransposeIntoMatMul,
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
    &kSqrtDivToRsqrtMul,
    &kRemoveIdempotent,
    &kConvertPow,
    &kConvertLog1p,
    &kLogSoftmax,
    &kConvertExpm1,
    &kRemoveStackSliceSameAxis,
    &kSimplifyEmbeddingLookup,
    &kRemoveCastIntoSegmentReduction,
    &kFuseSquaredDiff,
};

}  // namespace

Status OptimizeArithmetic(Graph& graph, const PassContext& context) {
  return RunRules(kRules, "ArithmeticOptimizer", graph, context);
}

}  // namespace smelt
