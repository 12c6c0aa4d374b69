#include "smelt/optimize/pipeline.h"

#include <algorithm>

namespace smelt {
namespace {

// For rows that no field of the configuration turns off.
bool Always(const RewriterConfig&) { return true; }
template <Toggle RewriterConfig::*kToggle>
bool UnlessOff(const RewriterConfig& config) {
  return config.*kToggle != Toggle::kOff;
}
template <Toggle RewriterConfig::*kToggle>
bool WhereOn(const RewriterConfig& config) {
  return config.*kToggle == Toggle::kOn;
}

constexpr PassRow kPasses[] = {
    {{"model_pruner", PruneModel, "first: what nobody needs is not worth rewriting"},
     "pruning",
     [](const RewriterConfig& c) { return !c.disable_model_pruning; },
     PassUse::kGraphs},
    {{"implementation_selector", SelectImplementationsByDevice,
      "before inlining: a call knows its device"},
     "implementation_selector",
     UnlessOff<&RewriterConfig::implementation_selector>,
     PassUse::kGraphs},
    {{"function_optimizer", InlineFunctions,
      "before all that looks at nodes: it sees through calls without knowing of them"},
     "",
     UnlessOff<&RewriterConfig::function_optimization>,
     PassUse::kExecution},
    {{"function_optimizer", OptimizeFunctions,
      "before all that looks at nodes, and after devices are chosen"},
     "function",
     UnlessOff<&RewriterConfig::function_optimization>,
     PassUse::kGraphs},
    {{"call_modules", CallModules, "after inlining: modules stand in functions"},
     "",
     Always,
     PassUse::kExecution},
    {{"function_optimizer", InlineFunctions, "what the modules were lowered to"},
     "",
     UnlessOff<&RewriterConfig::function_optimization>,
     PassUse::kExecution},
    {{"freeze_variables", FreezeVariables, "before folding: weights become foldable"},
     "",
     Always,
     PassUse::kExecution},
    {{"late_reads", LateReads, "after freezing: only variables that stay are read late"},
     "",
     Always,
     PassUse::kExecution},
    {{"remove_identities", RemoveIdentities,
      "before folding: reads of variables leave identities between constants and their users"},
     "",
     Always,
     PassUse::kExecution},
    {{"common_subgraph_elimination", EliminateCommonSubgraphs,
      "before folding: what is there once is folded once"},
     "common_subgraph_elimination",
     [](const RewriterConfig& c) {
       return c.common_subgraph_elimination != Toggle::kOff &&
              c.arithmetic_optimization != Toggle::kOff;
     },
     PassUse::kGraphs},
    {{"debug_stripper", StripDebugOps, "before folding: checks stand between constants"},
     "debug_stripper",
     WhereOn<&RewriterConfig::debug_stripper>},
    {{"constant_folding", OptimizeConstants,
      "before arithmetic, which looks for constants beside what it rewrites"},
     "constfold",
     UnlessOff<&RewriterConfig::constant_folding>,
     PassUse::kGraphs},
    {{"fold_constants", FoldConstants,
      "before remapping: biases and statistics are constants then"},
     "",
     UnlessOff<&RewriterConfig::constant_folding>,
     PassUse::kExecution},
    {{"shape_optimizer", OptimizeShapes, "after folding: axes are constants then"},
     "shape",
     UnlessOff<&RewriterConfig::shape_optimization>,
     PassUse::kGraphs},
    {{"pin_to_host_optimizer", PinToHost, "after what makes shapes and axes small constants"},
     "pin_to_host",
     WhereOn<&RewriterConfig::pin_to_host_optimization>,
     PassUse::kGraphs},
    {{"remove_involutions", RemoveInvolutions, "before remapping: brings neighbors together"},
     "",
     UnlessOff<&RewriterConfig::arithmetic_optimization>,
     PassUse::kExecution},
    {{"arithmetic_optimizer", OptimizeArithmetic,
      "after folding: it looks for constants beside what it rewrites"},
     "arithmetic",
     UnlessOff<&RewriterConfig::arithmetic_optimization>,
     PassUse::kGraphs},
    {{"widen_where_slow", WidenWhereSlow, "after folding: weights are constants then"},
     "",
     Always,
     PassUse::kExecution},
    {{"fuse_quantized", FuseQuantized,
      "after folding: weights, biases and scales are constants then"},
     "",
     Always,
     PassUse::kExecution},
    {{"remap", Remap, "last of the rewrites: looks for neighbors, which the others bring together"},
     "",
     UnlessOff<&RewriterConfig::remapping>,
     PassUse::kExecution},
    {{"remapper", RemapGraph, "after the others brought neighbors together"},
     "remap",
     UnlessOff<&RewriterConfig::remapping>,
     PassUse::kGraphs},
    {{"loop_optimizer", OptimizeLoops, "after folding: predicates are constants then"},
     "loop",
     UnlessOff<&RewriterConfig::loop_optimization>,
     PassUse::kGraphs,
     PassTurn::kFirstIteration},
    {{"dependency_optimizer", OptimizeDependencies,
      "last: the others leave identities, and waits for what is constant by now"},
     "dependency",
     UnlessOff<&RewriterConfig::dependency_optimization>,
     PassUse::kGraphs},
    {{"remove_identities", RemoveIdentities, "drops what the rewrites left unread"},
     "",
     Always,
     PassUse::kExecution},
};

// What tests name beside those.
constexpr Pass kOtherPasses[] = {
    {"widen_bfloat16", WidenBfloat16, "what widen_where_slow does where that is so"},
};

bool IsFor(const PassRow& row, PassUse use) { return row.use == PassUse::kBoth || row.use == use; }

}  // namespace

std::span<const PassRow> AllPasses() { return kPasses; }

const Pass* FindPass(absl::string_view name) {
  for (const PassRow& row : kPasses) {
    if (row.pass.name == name || (!row.key.empty() && row.key == name)) return &row.pass;
  }
  const auto* other = std::ranges::find(kOtherPasses, name, &Pass::name);
  return other == std::end(kOtherPasses) ? nullptr : other;
}

std::vector<Pass> ChoosePasses(const RewriterConfig& config, PassUse use,
                               std::vector<std::string>* unknown) {
  std::vector<const PassRow*> rows;
  if (config.optimizers.empty()) {
    for (const PassRow& row : kPasses) {
      if (IsFor(row, use) && row.wanted(config)) rows.push_back(&row);
    }
  } else {
    for (const std::string& name : config.optimizers) {
      const auto* row = std::ranges::find_if(
          kPasses, [&](const PassRow& r) { return r.key == name && IsFor(r, use); });
      if (row != std::end(kPasses)) {
        rows.push_back(row);
      } else if (unknown != nullptr) {
        unknown->push_back(name);
      }
    }
  }
  std::vector<Pass> out;
  // A first answer waits for the passes: sessions run them once unless they are told otherwise.
  const int by_default = use == PassUse::kExecution ? 1 : kDefaultIterations;
  const int iterations =
      config.meta_optimizer_iterations > 0 ? config.meta_optimizer_iterations : by_default;
  for (int i = 0; i < iterations; ++i) {
    for (const PassRow* row : rows) {
      const bool now = row->turn == PassTurn::kEveryIteration ||
                       (row->turn == PassTurn::kFirstIteration && i == 0);
      if (now) out.push_back(row->pass);
    }
  }
  for (const PassRow* row : rows) {
    if (row->turn == PassTurn::kAfterAll) out.push_back(row->pass);
  }
  return out;
}

Status Optimize(Graph& graph, const PassContext& context, const PipelineOptions& options) {
  return RunPasses(ChoosePasses(context.config, PassUse::kExecution), graph, context, options);
}

}  // namespace smelt
