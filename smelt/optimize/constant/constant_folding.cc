// TensorFlow's constant_folding: values that shapes tell, nodes of constants, and what constants
// make simple; again until nothing changes.
#include "smelt/optimize/constant/fold.h"
#include "smelt/optimize/constant/rules.h"

namespace smelt {
namespace {

using namespace constant;

constexpr const Rule* kMaterialize[] = {
    &kMaterializeShapes,           &kMaterializeShapeN,
    &kMaterializeTensorArraySize,  &kMaterializeBroadcastGradientArgs,
    &kMaterializeReductionIndices, &kMaterializeConstantValuedNode,
};

constexpr const Rule* kSimplify[] = {
    &kRemoveSplit,
    &kRemoveTranspose,
    &kRemoveRandomShuffle,
    &kRemoveReverse,
    &kSimplifySlice,
    &kSimplifyStridedSlice,
    &kSimplifyTile,
    &kSimplifyPad,
    &kSimplifySqueeze,
    &kSimplifyPack,
    &kMoveConstantsPastEnter,
    &kSimplifySwitch,
    &kSimplifyReduction,
    &kSimplifyReshape,
    &kSimplifyArithmeticOperations,
    &kReduceDivToReciprocalMul,
    &kConstantPushDown,
    &kMulConvPushDown,
    &kPartialConstPropThroughIdentityN,
    &kPartialAssocOpConstFolding,
    &kMergeConcat,
    &kPartialConcatConstFolding,
    &kConstantPushDownBiasAdd,
    &kSimplifyCase,
    &kSimplifySelect,
    &kRemoveRedundantVariableUpdates,
};

// Each round works through the whole graph; what a round leaves for the next is rare, and what
// sixteen leave is lost.
constexpr int kMaxRounds = 16;

// What comes from outside stays, and what a TPU's compiler looks for.
bool Stays(const Node& node) { return IsFed(node) || IsMarkedForTpu(node); }

}  // namespace

Status OptimizeConstants(Graph& graph, const PassContext& context) {
  const bool trust_feeds = context.config.constant_folding == Toggle::kAggressive;
  Rewriter rewriter(graph, context, "ConstantFolding", trust_feeds);
  Folder folder(rewriter);
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    ASSIGN_OR_RETURN(const bool materialized, RunRules(kMaterialize, rewriter, Stays));
    ASSIGN_OR_RETURN(const bool folded, folder.Run());
    // A first answer waits: what simplifying leaves constant is folded, and that is all.
    if (context.for_execution && round > 0) break;
    ASSIGN_OR_RETURN(const bool simplified, RunRules(kSimplify, rewriter, Stays));
    changed = simplified || (!context.for_execution && (materialized || folded));
  }
  if (context.fetch_known) graph.Prune(Roots(graph));
  return OkStatus();
}

}  // namespace smelt
