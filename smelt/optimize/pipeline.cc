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
template <Toggle RewriterConfig::*kToggle>
bool IsMixed(const RewriterConfig& config) {
  return config.*kToggle == Toggle::kOn || config.*kToggle == Toggle::kAggressive;
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
    {{"open_gradients", OpenGradients, "before inlining, which some ask not to be done"},
     "",
     Always,
     PassUse::kNeeded},
    {{"function_optimizer", OptimizeFunctions,
      "before all that looks at nodes, and after devices are chosen"},
     "function",
     UnlessOff<&RewriterConfig::function_optimization>},
    {{"call_modules", CallModules, "after inlining: modules stand in functions"},
     "",
     Always,
     PassUse::kNeeded},
    {{"function_optimizer", OptimizeFunctions, "what the modules were lowered to"},
     "function",
     UnlessOff<&RewriterConfig::function_optimization>,
     PassUse::kExecution},
    {{"freeze_variables", FreezeVariables, "before folding: weights become foldable"},
     "",
     Always,
     PassUse::kExecution},
    {{"late_reads", LateReads, "after freezing: only variables that stay are read late"},
     "",
     Always,
     PassUse::kNeeded},
    {{"dependency_optimizer", OptimizeDependencies,
      "before what looks for neighbors: reads of variables leave identities between them"},
     "dependency",
     UnlessOff<&RewriterConfig::dependency_optimization>,
     PassUse::kExecution},
    {{"common_subgraph_elimination", EliminateCommonSubgraphs,
      "before folding: what is there once is folded once"},
     "common_subgraph_elimination",
     [](const RewriterConfig& c) {
       return c.common_subgraph_elimination != Toggle::kOff &&
              c.arithmetic_optimization != Toggle::kOff;
     }},
    {{"debug_stripper", StripDebugOps, "before folding: checks stand between constants"},
     "debug_stripper",
     WhereOn<&RewriterConfig::debug_stripper>},
    {{"fuse_quantizing", FuseQuantizing,
      "before folding: it moves divisions by a scale away from the rounding"},
     "",
     Always,
     PassUse::kExecution},
    {{"constant_folding", OptimizeConstants,
      "before arithmetic, which looks for constants beside what it rewrites"},
     "constfold",
     UnlessOff<&RewriterConfig::constant_folding>},
    {{"scan_loops", ScanLoops,
      "after folding: where loops begin is constant by now; before fusing: it moves products"},
     "",
     Always,
     PassUse::kExecution},
    {{"shape_optimizer", OptimizeShapes, "after folding: axes are constants then"},
     "shape",
     UnlessOff<&RewriterConfig::shape_optimization>},
    {{"auto_mixed_precision_fp16_cpu", MixHalfOnCpu,
      "after folding: constants are no longer computed"},
     "",
     IsMixed<&RewriterConfig::auto_mixed_precision>,
     PassUse::kGraphs,
     PassTurn::kFirstIteration},
    {{"auto_mixed_precision", MixHalfOnGpu, "after folding, as on a CPU"},
     "auto_mixed_precision",
     IsMixed<&RewriterConfig::auto_mixed_precision>,
     PassUse::kGraphs,
     PassTurn::kFirstIteration},
    {{"auto_mixed_precision_onednn_bfloat16", MixBfloat16, "after folding, as in half"},
     "auto_mixed_precision_onednn_bfloat16",
     IsMixed<&RewriterConfig::auto_mixed_precision_onednn_bfloat16>,
     PassUse::kGraphs,
     PassTurn::kFirstIteration},
    {{"auto_mixed_precision_mkl", MixBfloat16, "the older name of the same"},
     "auto_mixed_precision_mkl",
     IsMixed<&RewriterConfig::auto_mixed_precision_mkl>,
     PassUse::kGraphs,
     PassTurn::kFirstIteration},
    {{"auto_mixed_precision_cpu", EmulateHalf, "after folding, as in half"},
     "auto_mixed_precision_cpu",
     IsMixed<&RewriterConfig::auto_mixed_precision_cpu>,
     PassUse::kGraphs,
     PassTurn::kFirstIteration},
    {{"pin_to_host_optimizer", PinToHost, "after what makes shapes and axes small constants"},
     "pin_to_host",
     WhereOn<&RewriterConfig::pin_to_host_optimization>,
     PassUse::kGraphs},
    {{"arithmetic_optimizer", OptimizeArithmetic,
      "after folding: it looks for constants beside what it rewrites"},
     "arithmetic",
     UnlessOff<&RewriterConfig::arithmetic_optimization>},
    {{"layout", OptimizeLayout, "before remapping: what it fuses has its format by then"},
     "layout",
     UnlessOff<&RewriterConfig::layout_optimizer>,
     PassUse::kGraphs,
     PassTurn::kFirstIteration},
    {{"widen_where_slow", WidenWhereSlow, "after folding: weights are constants then"},
     "",
     Always,
     PassUse::kExecution},
    {{"fuse_quantized", FuseQuantized,
      "after folding: weights, biases and scales are constants then"},
     "",
     Always,
     PassUse::kExecution},
    {{"byte_tables", MakeByteTables, "after fusing: what is quantized between layers is one node"},
     "",
     Always,
     PassUse::kExecution},
    {{"early_strides", MoveStridesUp, "before remapping: what is elementwise still stands apart"},
     "",
     Always,
     PassUse::kExecution},
    {{"dependency_optimizer", OptimizeDependencies,
      "before remapping: simplified nodes leave identities between neighbors"},
     "dependency",
     UnlessOff<&RewriterConfig::dependency_optimization>,
     PassUse::kExecution},
    {{"remapper", RemapGraph, "after the others brought neighbors together"},
     "remap",
     UnlessOff<&RewriterConfig::remapping>},
    {{"loop_optimizer", OptimizeLoops, "after folding: predicates are constants then"},
     "loop",
     UnlessOff<&RewriterConfig::loop_optimization>,
     PassUse::kGraphs,
     PassTurn::kFirstIteration},
    {{"dependency_optimizer", OptimizeDependencies,
      "after the others: they leave identities, and waits for what is constant by now"},
     "dependency",
     UnlessOff<&RewriterConfig::dependency_optimization>},
    {{"memory_optimizer", OptimizeMemory,
      "last: others would take its copies for what is computed twice"},
     "memory",
     [](const RewriterConfig& c) {
       // XLA has a mind of its own about memory.
       return c.memory_optimization != MemoryOptimization::kNone &&
              !(c.memory_optimization == MemoryOptimization::kDefault && c.global_jit);
     },
     PassUse::kGraphs,
     PassTurn::kFirstIteration},
    {{"auto_parallel", ParallelizeSteps, "after the rewrites: what it copies is done"},
     "autoparallel",
     [](const RewriterConfig& c) { return c.auto_parallel; },
     PassUse::kGraphs,
     PassTurn::kFirstIteration},
    {{"scoped_allocator_optimizer", ShareBuffers, "after all: nothing may part what it joined"},
     "scoped_allocator",
     WhereOn<&RewriterConfig::scoped_allocator_optimization>,
     PassUse::kGraphs,
     PassTurn::kAfterAll},
    {{"control_flow_sink", SinkIntoBranches,
      "when all functions are done: what a branch needs is known"},
     "",
     [](const RewriterConfig& c) { return !c.disable_tfg_optimizer; },
     PassUse::kGraphs,
     PassTurn::kAtTheEnd},
};

// What tests name beside those.
constexpr Pass kOtherPasses[] = {
    {"widen_bfloat16", WidenBfloat16, "what widen_where_slow does where that is so"},
};

// Is it on for a session?
bool RunsBefore(const PassRow& row, const RewriterConfig& config) {
  if (row.use == PassUse::kNeeded) return true;
  if (config.disable_meta_optimizer) return false;
  if (config.optimizers.empty() || row.key.empty()) return row.wanted(config);
  return std::ranges::find(config.optimizers, row.key) != config.optimizers.end();
}

}  // namespace

bool IsFor(const PassRow& row, PassUse use) {
  return row.use == PassUse::kBoth || row.use == use ||
         (row.use == PassUse::kNeeded && use == PassUse::kExecution);
}

std::span<const PassRow> AllPasses() { return kPasses; }

const Pass* FindPass(absl::string_view name) {
  for (const PassRow& row : kPasses) {
    if (row.pass.name == name || (!row.key.empty() && row.key == name)) return &row.pass;
  }
  const auto* other = std::ranges::find(kOtherPasses, name, &Pass::name);
  return other == std::end(kOtherPasses) ? nullptr : other;
}

std::vector<Pass> RepeatPasses(std::span<const PassRow> rows, int iterations) {
  std::vector<Pass> out;
  out.reserve(rows.size());
  for (int i = 0; i < iterations; ++i) {
    for (const PassRow& row : rows) {
      const bool now = row.turn == PassTurn::kEveryIteration ||
                       (row.turn == PassTurn::kFirstIteration && i == 0);
      if (now) out.push_back(row.pass);
    }
  }
  for (const PassRow& row : rows) {
    if (row.turn == PassTurn::kAfterAll) out.push_back(row.pass);
  }
  return out;
}

std::vector<Pass> ChoosePasses(const RewriterConfig& config) {
  std::vector<PassRow> rows;
  rows.reserve(std::size(kPasses));
  for (const PassRow& row : kPasses) {
    if (IsFor(row, PassUse::kExecution) && RunsBefore(row, config)) rows.push_back(row);
  }
  return RepeatPasses(rows, std::max(config.meta_optimizer_iterations, 1));
}

Status Optimize(Graph& graph, const PassContext& context, const PipelineOptions& options) {
  return RunPasses(ChoosePasses(context.config), graph, context, options);
}

}  // namespace smelt
