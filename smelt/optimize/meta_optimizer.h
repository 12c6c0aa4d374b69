// TensorFlow's meta-optimizer: runs the passes that a configuration asks for over a graph and over
// each function that it calls.
#ifndef SMELT_OPTIMIZE_META_OPTIMIZER_H_
#define SMELT_OPTIMIZE_META_OPTIMIZER_H_

#include <string>
#include <vector>

#include "smelt/optimize/graph_item.h"
#include "smelt/optimize/pipeline.h"

namespace smelt {

// What the passes did to the main graph (empty) or to a function.
struct GraphReport {
  struct Pass {
    std::string name;
    PassRun::Outcome outcome = PassRun::Outcome::kUnchanged;
    absl::Duration time;
    int nodes_before = 0, nodes_after = 0;
    int64_t edges_before = 0, edges_after = 0;  // of data and of control
    std::string why_undone;
  };
  std::string graph;
  std::vector<Pass> passes;
};

struct OptimizationReport {
  absl::Duration time;                          // the whole, without reading and writing
  std::vector<GraphReport> graphs;              // the main graph first
  std::vector<std::string> unknown_optimizers;  // names that the configuration has and no pass
};

struct MetaOptions {
  RewriterConfig config;
  std::vector<DeviceProperties> devices;  // that the graph is for; empty: not known
  RewriteLog* log = nullptr;              // may be nullptr
  // Called with the main graph (of no name), and later with each function that may be optimized,
  // before its first pass, or where it is too small for any. May be empty.
  std::function<void(absl::string_view name, const Graph& graph)> before;
  // Called after each pass as PipelineOptions::after is. May be empty.
  std::function<void(const PassRun& run, const Graph& graph)> after;
};

// Optimizes item.graph in place. A pass that fails, or leaves a graph that does not verify, is
// undone and named in the report; with config.fail_on_optimizer_errors it is the result.
// DEADLINE_EXCEEDED when config.meta_optimizer_timeout_ms is over, INVALID_ARGUMENT for a graph
// that does not verify or lacks what the item names: item.graph is then of no use. A graph of fewer
// than config.min_graph_nodes nodes is left as it is. Not thread safe on one item.
StatusOr<OptimizationReport> OptimizeItem(GraphItem& item, const MetaOptions& options);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_META_OPTIMIZER_H_
