// The one list of passes: what sessions run before execution, what `smelt optimize` and the
// converter run, and TensorFlow's Grappler by its own names are rows of it. run_passes.h runs them.
#ifndef SMELT_OPTIMIZE_PIPELINE_H_
#define SMELT_OPTIMIZE_PIPELINE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/optimize/run_passes.h"

namespace smelt {

// Which graphs a pass is for: those that this program is about to run (kNeeded: it cannot run them
// without, whatever the configuration says), the user's own, or both.
enum class PassUse { kBoth, kGraphs, kExecution, kNeeded };

// How often a pass runs, where the others run once in each iteration. kAtTheEnd: after the passes
// of the graph and of all functions (meta_optimizer.h), over the callees of a graph before the
// graph.
enum class PassTurn { kEveryIteration, kFirstIteration, kAfterAll, kAtTheEnd };

// A row of the list.
struct PassRow {
  Pass pass;
  // What RewriterConfig.optimizers calls it; empty: it cannot be asked for.
  absl::string_view key;
  // Whether it runs when the configuration lists no optimizers.
  bool (*wanted)(const RewriterConfig& config);
  PassUse use = PassUse::kBoth;
  PassTurn turn = PassTurn::kEveryIteration;
};

// In order; a pass may stand in several places.
std::span<const PassRow> AllPasses();
// By name or key; nullptr: there is none.
const Pass* FindPass(absl::string_view name);

// `use`: kGraphs or kExecution.
bool IsFor(const PassRow& row, PassUse use);
// The passes of `rows` in their turns.
std::vector<Pass> RepeatPasses(std::span<const PassRow> rows, int iterations);

// The passes that `config` asks for before execution (plan_passes.h: those for graphs), in the
// order of the list; those without a key run unless the optimizer is off. A first answer waits for
// them: they run once unless the configuration says otherwise.
std::vector<Pass> ChoosePasses(const RewriterConfig& config);

// The passes of context.config for execution.
Status Optimize(Graph& graph, const PassContext& context, const PipelineOptions& options = {});

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_PIPELINE_H_
