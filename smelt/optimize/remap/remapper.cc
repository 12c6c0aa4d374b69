// TensorFlow's remapper: its rules in TensorFlow's order.
#include "smelt/optimize/remap/rules.h"

namespace smelt {
namespace {

using namespace remap;

constexpr const Rule* kRemapRules[] = {
    &kFusedConvWithActivation,
    &kContractionWithBiasAndAddAndActivation,
    &kContractionWithBiasAndAdd,
    &kHardSwish,
    &kGeluExact,
    &kConvWithSwish,
    &kConvWithBatchNormAndSwish,
    &kMish,
    &kSwish,
    &kMaximumToLeakyRelu,
    &kInstanceNormWithActivation,
    &kInstanceNorm,
    &kLayerNorm,
    &kBatchMatMulWithMulAndAdd,
    &kPadWithConv3D,
    &kContractionWithBias,
    &kContractionWithBiasAndActivation,
    &kContractionWithSqueezeAndBias,
    &kConvWithBatchNorm,
    &kConvWithBatchNormAndActivation,
    &kBatchNormWithRelu,
    &kTensorToHashBucket,
    &kBatchNormToPrimitives,
};

}  // namespace

Status RemapGraph(Graph& graph, const PassContext& context) {
  return RunRules(kRemapRules, "Remapper", context.config.remapping, graph, context);
}

}  // namespace smelt
