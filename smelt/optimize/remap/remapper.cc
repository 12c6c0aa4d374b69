// TensorFlow's remapper: its rules in TensorFlow's order, and those for sessions.
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
    &kBatchNormGradWithReluGrad,
    &kTensorToHashBucket,
    &kBatchNormToPrimitives,
};

// The weights of a loaded model are constants, and smelt's kernels take longer chains than
// TensorFlow's.
constexpr const Rule* kExecutionRules[] = {
    &kContractionChain,
    &kTensorToHashBucket,
};
// After those: a convolution takes the normalization behind it as it is.
constexpr const Rule* kRulesForTheRest[] = {&kBatchNormToScaleAndShift};

}  // namespace

Status RemapGraph(Graph& graph, const PassContext& context) {
  const Toggle toggle = context.config.remapping;
  if (!context.for_execution) return RunRules(kRemapRules, "Remapper", toggle, graph, context);
  RETURN_IF_ERROR(RunRules(kExecutionRules, "Remapper", toggle, graph, context));
  RETURN_IF_ERROR(RunRules(kRulesForTheRest, "Remapper", toggle, graph, context));
  // Constants that became part of others.
  graph.Prune(Roots(graph));
  return OkStatus();
}

}  // namespace smelt
