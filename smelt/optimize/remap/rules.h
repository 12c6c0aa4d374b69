// The rules of the remapper, by theme; remapper.cc puts them in order.
#ifndef SMELT_OPTIMIZE_REMAP_RULES_H_
#define SMELT_OPTIMIZE_REMAP_RULES_H_

#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt::remap {

// contraction.cc: convolutions and products with what follows them
extern const Rule kContractionWithBias;
extern const Rule kContractionWithBiasAndActivation;
extern const Rule kContractionWithSqueezeAndBias;
extern const Rule kConvWithBatchNorm;
extern const Rule kConvWithBatchNormAndActivation;
extern const Rule kConvWithBatchNormAndSwish;
// chain.cc
extern const Rule kContractionChain;
// onednn_sums.cc
extern const Rule kContractionWithBiasAndAdd;
extern const Rule kContractionWithBiasAndAddAndActivation;
// onednn_activations.cc
extern const Rule kSwish;
extern const Rule kMish;
extern const Rule kConvWithSwish;
extern const Rule kMaximumToLeakyRelu;
// onednn_norms.cc
extern const Rule kLayerNorm;
extern const Rule kInstanceNorm;
extern const Rule kInstanceNormWithActivation;
// onednn_patterns.cc
extern const Rule kHardSwish;
extern const Rule kGeluExact;
extern const Rule kBatchMatMulWithMulAndAdd;
extern const Rule kPadWithConv3D;
extern const Rule kFusedConvWithActivation;
// batch_norm_relu.cc
extern const Rule kBatchNormWithRelu;
extern const Rule kBatchNormGradWithReluGrad;
// batch_norm.cc
extern const Rule kBatchNormToPrimitives;
extern const Rule kBatchNormToScaleAndShift;
// text.cc
extern const Rule kTensorToHashBucket;

}  // namespace smelt::remap

#endif  // SMELT_OPTIMIZE_REMAP_RULES_H_
