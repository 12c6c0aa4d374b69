#include "smelt/kernels/onednn/features.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

Status WidenWhereSlow(Graph& graph, const PassContext& context) {
  return Bfloat16IsNative() ? WidenSmallBfloat16(graph, context) : WidenBfloat16(graph, context);
}

constexpr Pass kPipeline[] = {
    {"inline_functions", InlineFunctions,
     "first: every other pass sees through calls without knowing of them"},
    {"call_modules", CallModules, "after inlining: modules stand in functions"},
    {"inline_functions", InlineFunctions, "what the modules were lowered to"},
    {"freeze_variables", FreezeVariables, "before folding: weights become foldable"},
    {"late_reads", LateReads, "after freezing: only variables that stay are read late"},
    {"remove_identities", RemoveIdentities,
     "before folding: reads of variables leave identities between constants and their users"},
    {"fold_constants", FoldConstants, "before remapping: biases and statistics are constants then"},
    {"widen_bfloat16", WidenWhereSlow, "after folding: weights are constants then"},
    {"fuse_quantized", FuseQuantized,
     "after folding: weights, biases and scales are constants then"},
    {"remap", Remap, "last of the rewrites: looks for neighbours, which the others bring together"},
    {"remove_identities", RemoveIdentities, "drops what the rewrites left unread"},
};

}  // namespace

std::vector<Node*> Roots(const Graph& graph) {
  std::vector<Node*> roots;
  for (Node* n : graph.Nodes()) {
    if (n->Is("_Retval") || n->attrs().Find("_root") != nullptr) roots.push_back(n);
  }
  return roots;
}

void AddRoot(Node* node) { node->attrs().Set("_root", true); }

Status Optimize(Graph& graph, const PassContext& context) {
  for (const Pass& pass : kPipeline) {
    Status s = pass.run(graph, context);
    if (!s.ok()) return Suffix(s, absl::StrCat(" (in pass ", pass.name, ")"));
  }
  return OkStatus();
}

}  // namespace smelt
