#include "smelt/optimize/pipeline.h"

#include <cstdlib>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "smelt/graph/verify.h"

namespace smelt {
namespace {

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
    {"remove_involutions", RemoveInvolutions, "before remapping: brings neighbors together"},
    {"widen_where_slow", WidenWhereSlow, "after folding: weights are constants then"},
    {"fuse_quantized", FuseQuantized,
     "after folding: weights, biases and scales are constants then"},
    {"remap", Remap, "last of the rewrites: looks for neighbors, which the others bring together"},
    {"remove_identities", RemoveIdentities, "drops what the rewrites left unread"},
};

constexpr Pass kOtherPasses[] = {
    {"widen_bfloat16", WidenBfloat16, "what widen_where_slow does where that is so"},
};

const Pass* FindIn(std::span<const Pass> passes, absl::string_view name) {
  for (const Pass& pass : passes) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

// Runs one row, undoing it where it leaves a graph that does not verify.
StatusOr<PassRun> RunPass(const Pass& pass, Graph& graph, const PassContext& context,
                          VerifyPasses verify) {
  PassRun run;
  run.pass = pass.name;
  run.nodes_before = graph.num_nodes();
  const int64_t version = graph.version();
  std::unique_ptr<Graph> before;
  if (verify == VerifyPasses::kUndo) {
    ASSIGN_OR_RETURN(before, graph.Clone());
  }
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(Suffix(pass.run(graph, context), absl::StrCat(" (in pass ", pass.name, ")")));
  run.time = absl::Now() - start;
  if (graph.version() != version) run.outcome = PassRun::Outcome::kChanged;
  if (verify != VerifyPasses::kOff) {
    if (const Status valid = Verify(graph); !valid.ok()) {
      run.why_undone = std::string(valid.message());
      if (verify == VerifyPasses::kFail) {
        return Internal("pass ", pass.name,
                        " leaves a graph that does not verify: ", run.why_undone);
      }
      graph = std::move(*before);
      run.outcome = PassRun::Outcome::kUndone;
    }
  }
  run.nodes_after = graph.num_nodes();
  return run;
}

}  // namespace

std::span<const Pass> Pipeline() { return kPipeline; }
std::span<const Pass> OtherPasses() { return kOtherPasses; }

const Pass* FindPass(absl::string_view name) {
  const Pass* pass = FindIn(kPipeline, name);
  return pass != nullptr ? pass : FindIn(kOtherPasses, name);
}

VerifyPasses VerifyPassesByDefault() {
  static const VerifyPasses chosen = [] {
    const char* text = std::getenv("SMELT_VERIFY_PASSES");
    const absl::string_view wanted = text == nullptr ? "" : text;
    if (wanted == "undo") return VerifyPasses::kUndo;
    return wanted == "fail" ? VerifyPasses::kFail : VerifyPasses::kOff;
  }();
  return chosen;
}

Status RunPasses(std::span<const Pass> passes, Graph& graph, const PassContext& context,
                 const PipelineOptions& options) {
  // A graph that does not verify before the first pass tells nothing of the passes.
  const bool sound = options.verify != VerifyPasses::kOff && Verify(graph).ok();
  const VerifyPasses verify = sound ? options.verify : VerifyPasses::kOff;
  // By pass: the graph's version after its last run.
  absl::flat_hash_map<absl::string_view, int64_t> done;
  for (const Pass& pass : passes) {
    PassRun run;
    const auto last = done.find(pass.name);
    if (last != done.end() && last->second == graph.version()) {
      run.pass = pass.name;
      run.outcome = PassRun::Outcome::kSkipped;
      run.nodes_before = run.nodes_after = graph.num_nodes();
    } else {
      ASSIGN_OR_RETURN(run, RunPass(pass, graph, context, verify));
      // The graph is then a copy, whose versions cannot be compared with those in `done`.
      if (run.outcome == PassRun::Outcome::kUndone) done.clear();
      done[pass.name] = graph.version();
    }
    run.graph = options.graph;
    if (options.after) options.after(run, graph);
  }
  return OkStatus();
}

Status Optimize(Graph& graph, const PassContext& context, const PipelineOptions& options) {
  return RunPasses(kPipeline, graph, context, options);
}

std::vector<Node*> Roots(const Graph& graph) {
  std::vector<Node*> roots;
  for (Node* n : graph.Nodes()) {
    if (IsRoot(*n)) roots.push_back(n);
  }
  return roots;
}

bool IsRoot(const Node& node) {
  return node.Is("_Retval") || node.attrs().Find("_root") != nullptr;
}

void AddRoot(Node* node) { node->attrs().Set("_root", true); }

}  // namespace smelt
