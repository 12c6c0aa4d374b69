// The pass manager: runs passes (pipeline.h lists them) over one graph.
//
// Passes have names that tests, flags and configurations use. A pass that cannot find anything new,
// since nothing but itself has touched the graph after it ran, is skipped. On request the graph is
// verified after each pass (graph/verify.h) and shown to whoever wants to see it.
#ifndef SMELT_OPTIMIZE_RUN_PASSES_H_
#define SMELT_OPTIMIZE_RUN_PASSES_H_

#include <functional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "smelt/graph/graph.h"
#include "smelt/optimize/passes.h"

namespace smelt {

class CustomOptimizer;  // custom/custom_optimizer.h

// One pass.
struct Pass {
  absl::string_view name;  // in reports and errors; TensorFlow's where it has the pass
  Status (*run)(Graph& graph, const PassContext& context);
  absl::string_view why_here;
  // In place of `run`, where it is not nullptr: what has a state of its own. It runs whenever it is
  // its turn.
  CustomOptimizer* custom = nullptr;
};

// What running one pass did.
struct PassRun {
  enum class Outcome { kUnchanged, kChanged, kSkipped, kUndone };
  absl::string_view pass;
  absl::string_view graph;  // PipelineOptions::graph
  Outcome outcome = Outcome::kUnchanged;
  absl::Duration time;
  int nodes_before = 0, nodes_after = 0;
  std::string why_undone;  // kUndone: its error, or the node and the rule that it broke
};

// How reports name it: "nothing new" of a pass that was skipped.
absl::string_view OutcomeWord(PassRun::Outcome outcome);

// What says that PassContext::deadline is over.
Status DeadlineIsOver();

enum class VerifyPasses {
  kOff,
  kUndo,    // a pass that leaves a graph that does not verify is undone; the others go on
  kFail,    // such a pass is an error, INTERNAL
  kRefuse,  // INVALID_ARGUMENT: the user asked for it, and passes may be the user's
};
// What the environment variable SMELT_VERIFY_PASSES says, "undo" or "fail" (tests set it); else
// kOff. Read once.
VerifyPasses VerifyPassesByDefault();

struct PipelineOptions {
  // Costs a look at what each pass touched. A graph that does not verify before the first pass
  // is not verified after any.
  VerifyPasses verify = VerifyPassesByDefault();
  // A pass that fails is undone, as one whose graph does not verify.
  bool undo_failures = false;
  // The name under which `after` gets the graph: a function's; empty: the part of the main graph
  // that a request needs.
  std::string graph;
  // Called after each pass with the graph as it left it, in the thread that runs the passes. May be
  // empty.
  std::function<void(const PassRun& run, const Graph& graph)> after;
};

// Runs the passes in order. An error names the pass (INTERNAL where the graph does not verify);
// the graph is then of no use. Not thread safe on one graph. Nodes may be others afterwards: hold
// none across the call. Where passes are undone, the graph is copied once before the first, and
// those before the undone one run again; before and after a custom optimizer it is copied as well,
// so that none runs twice.
Status RunPasses(std::span<const Pass> passes, Graph& graph, const PassContext& context,
                 const PipelineOptions& options = {});

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_RUN_PASSES_H_
