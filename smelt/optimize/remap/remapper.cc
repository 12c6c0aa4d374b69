// TensorFlow's remapper: its rules in TensorFlow's order.
#include "smelt/optimize/remap/rules.h"

namespace smelt {
namespace {

using namespace remap;

constexpr const Rule* kRemapRules[] = {
    &kContractionWithBiasAndAddAndActivation,
    &kContractionWithBiasAndAdd,
    &kConvWithSwish,
    &kMish,
    &kSwish,
    &kMaximumToLeakyRelu,
    &kContractionWithBias,
    &kContractionWithBiasAndActivation,
    &kContractionWithSqueezeAndBias,
    &kConvWithBatchNorm,
    &kConvWithBatchNormAndActivation,
    &kTensorToHashBucket,
    &kBatchNormToPrimitives,
};

}  // namespace

Status RemapGraph(Graph& graph, const PassContext& context) {
  return RunRules(kRemapRules, "Remapper", context.config.remapping, graph, context);
}

}  // namespace smelt
