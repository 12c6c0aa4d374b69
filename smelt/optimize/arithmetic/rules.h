// The rules of the arithmetic optimizer, by theme; arithmetic_optimizer.cc puts them in order.
#ifndef SMELT_OPTIMIZE_ARITHMETIC_RULES_H_
#define SMELT_OPTIMIZE_ARITHMETIC_RULES_H_

#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt::arithmetic {

// algebra.cc: one op, or two, say the same
extern const Rule kRemoveInvolution;
extern const Rule kRemoveNegation;
extern const Rule kReplaceMulWithSquare;
extern const Rule kRemoveLogicalNot;
extern const Rule kRemoveIdempotent;
// functions.cc: functions of numbers that an op computes at once
extern const Rule kSqrtDivToRsqrtMul;
extern const Rule kConvertPow;
extern const Rule kConvertLog1p;
extern const Rule kLogSoftmax;
extern const Rule kConvertExpm1;
extern const Rule kFuseSquaredDiff;
// sums.cc: sums, and trees of sums or products
extern const Rule kAddOpsRewrite;
extern const Rule kHoistCommonFactor;
extern const Rule kMinimizeBroadcasts;
extern const Rule kSimplifyAggregation;
// unary.cc: functions of one input
extern const Rule kHoistCWiseUnaryChains;
extern const Rule kOptimizeMaxOrMinOfMonotonic;
extern const Rule kUnaryOpsComposition;
// transpose.cc: transpositions, and factors before convolutions
extern const Rule kFoldConjugateIntoTranspose;
extern const Rule kFoldMultiplyIntoConv;
extern const Rule kFoldTransposeIntoMatMul;
extern const Rule kRemoveIdentityTranspose;
// reshape.cc: reshapes, and what repeats a tensor
extern const Rule kReplacePackWithTileReshape;
extern const Rule kReplaceMulWithBroadcastByTile;
extern const Rule kReduceUpsamplingDims;
extern const Rule kRemoveRedundantReshapeOrBroadcastTo;
// slices.cc
extern const Rule kRemoveStackSliceSameAxis;
// casts.cc: casts, and what reads by indices
extern const Rule kRemoveRedundantBitcast;
extern const Rule kRemoveRedundantCast;
extern const Rule kReorderCastLikeAndValuePreserving;
extern const Rule kSimplifyEmbeddingLookup;
extern const Rule kRemoveCastIntoSegmentReduction;

}  // namespace smelt::arithmetic

#endif  // SMELT_OPTIMIZE_ARITHMETIC_RULES_H_
