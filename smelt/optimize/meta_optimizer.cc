#include "smelt/optimize/meta_optimizer.h"

#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "smelt/graph/verify.h"

namespace smelt {
namespace {

int64_t CountEdges(const Graph& graph) {
  int64_t edges = 0;
  for (int id = 0; id < graph.max_id(); ++id) {
    if (const Node* n = graph.NodeOf(id)) {
      edges += static_cast<int64_t>(n->inputs().size() + n->control_inputs().size());
    }
  }
  return edges;
}

class MetaOptimizer {
 public:
  MetaOptimizer(GraphItem& item, const MetaOptions& options) : item_(item), options_(options) {
    const int64_t timeout = options.config.meta_optimizer_timeout_ms;
    if (timeout > 0) deadline_ = absl::Now() + absl::Milliseconds(timeout);
  }

  StatusOr<OptimizationReport> Run() {
    if (options_.config.disable_meta_optimizer) return std::move(report_);
    RETURN_IF_ERROR(Verify(*item_.graph));
    ClearMarks(*item_.graph);
    RETURN_IF_ERROR(item_.Mark());
    passes_ = ChoosePasses(options_.config, PassUse::kGraphs, &report_.unknown_optimizers);
    PassContext context = Context();
    context.fetch_known = !item_.fetches.empty();
    RETURN_IF_ERROR(OptimizeGraph(*item_.graph, "", context));
    ClearMarks(*item_.graph);
    return std::move(report_);
  }

 private:
  PassContext Context() const {
    PassContext context;
    context.config = options_.config;
    context.for_execution = false;
    context.device_type = "";
    context.deadline = deadline_;
    context.log = options_.log;
    return context;
  }

  Status OptimizeGraph(Graph& graph, const std::string& name, const PassContext& context) {
    const int configured = options_.config.min_graph_nodes;
    const int least = configured == 0 ? kDefaultMinGraphNodes : configured;
    if (graph.num_nodes() < least) return OkStatus();
    GraphReport report;
    report.graph = name;
    int64_t edges = CountEdges(graph);
    PipelineOptions pipeline;
    pipeline.verify = VerifyPasses::kUndo;
    pipeline.undo_failures = true;
    pipeline.graph = name;
    if (options_.config.fail_on_optimizer_errors) {
      pipeline.verify = VerifyPasses::kFail;
      pipeline.undo_failures = false;
    }
    pipeline.after = [&](const PassRun& run, const Graph& now) {
      GraphReport::Pass pass{std::string(run.pass), run.outcome, run.time, run.nodes_before,
                             run.nodes_after,       edges,       edges,    run.why_undone};
      if (run.outcome == PassRun::Outcome::kChanged) pass.edges_after = edges = CountEdges(now);
      report.passes.push_back(std::move(pass));
      if (options_.after) options_.after(run, now);
    };
    RETURN_IF_ERROR(RunPasses(passes_, graph, context, pipeline));
    report_.graphs.push_back(std::move(report));
    return OkStatus();
  }

  GraphItem& item_;
  const MetaOptions& options_;
  absl::Time deadline_ = absl::InfiniteFuture();
  std::vector<Pass> passes_;
  OptimizationReport report_;
};

}  // namespace

StatusOr<OptimizationReport> OptimizeItem(GraphItem& item, const MetaOptions& options) {
  return MetaOptimizer(item, options).Run();
}

}  // namespace smelt
