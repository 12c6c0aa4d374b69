#include "smelt/analysis/estimate/graph_estimate.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "smelt/analysis/estimate/schedule.h"
#include "smelt/analysis/xla_shapes.h"

namespace smelt {
namespace {

// Functions within functions; what a program of ours or TensorFlow's nests is far below.
constexpr int kMaxDepth = 100;

const Node* NamedBy(const Graph& graph, absl::string_view tensor) {
  tensor = absl::StripPrefix(tensor, "^");
  return graph.Find(tensor.substr(0, tensor.find(':')));
}

class GraphEstimator {
 public:
  GraphEstimator(const Graph& graph, std::span<const DeviceProperties> devices)
      : graph_(graph), placement_(devices), shapes_(InferModelShapes(graph, XlaShapeRules())) {}

  GraphEstimate OfGraph(std::span<const std::string> feeds, std::span<const std::string> fetches) {
    absl::flat_hash_set<const Node*> fed;
    for (const std::string& name : feeds) fed.insert(NamedBy(graph_, name));
    std::vector<const Node*> asked;
    for (const std::string& name : fetches) {
      if (const Node* n = NamedBy(graph_, name)) asked.push_back(n);
    }
    for (const Node* n : graph_.Nodes()) {
      if (fetches.empty() && n->uses().empty()) asked.push_back(n);
    }
    return Of(graph_, shapes_.graph, fed, asked);
  }

 private:
  GraphEstimate Of(const Graph& graph, const ShapeTable& shapes,
                   const absl::flat_hash_set<const Node*>& fed,
                   std::span<const Node* const> asked) {
    // What functions take is found out before the run, each once.
    std::map<const Node*, GraphEstimate> calls;
    for (const Node* n : graph.Nodes()) {
      ForEachCallee(*graph_.library(), *n, [&](absl::string_view name) {
        if (graph_.library()->Find(name) != nullptr) Add(OfFunction(name), calls[n]);
      });
    }
    const auto called = [&](const Node& n) {
      const auto found = calls.find(&n);
      return found == calls.end() ? GraphEstimate() : found->second;
    };
    const auto is_fed = [&](const Node& n) { return fed.contains(&n); };
    const auto duration = [&](const Node& n, int device) {
      const OpEstimate estimate = EstimateOp(n, shapes, KnownOps::kMore);
      return AddEstimates(TimeOf(estimate, placement_.speed(device)).total, called(n).nanoseconds);
    };
    const auto schedule = SimulateRun(graph, placement_, {asked, is_fed, duration});
    if (!schedule.ok()) return {};
    GraphEstimate total;
    for (const Node* n : graph.Nodes()) {
      if (schedule->of(*n).start < 0) continue;
      Add(called(*n), total);
      const OpEstimate estimate = EstimateOp(*n, shapes, KnownOps::kMore);
      const int64_t bytes = AddEstimates(estimate.bytes_read, estimate.bytes_written);
      const bool calls_others = calls.contains(n);
      Add({.flops = estimate.flops,
           .bytes = calls_others ? 0 : bytes,
           .nodes = 1,
           .inaccurate = !calls_others && !estimate.accurate},
          total);
    }
    total.nanoseconds = schedule->finish;
    total.peak_bytes = 0;
    const auto more = [&](const Node& n) { return called(n).peak_bytes; };
    for (const PeakMemory& peak : PeakMemoryOf(graph, shapes, placement_, *schedule, more)) {
      total.peak_bytes = std::max(total.peak_bytes, peak.bytes);
    }
    return total;
  }

  // One after the other.
  static void Add(const GraphEstimate& what, GraphEstimate& to) {
    to.flops = AddEstimates(to.flops, what.flops);
    to.bytes = AddEstimates(to.bytes, what.bytes);
    to.nanoseconds = AddEstimates(to.nanoseconds, what.nanoseconds);
    to.peak_bytes = std::max(to.peak_bytes, what.peak_bytes);
    to.nodes = AddEstimates(to.nodes, what.nodes);
    to.inaccurate = AddEstimates(to.inaccurate, what.inaccurate);
  }

  GraphEstimate OfFunction(absl::string_view name) {
    const auto [it, added] = functions_.try_emplace(std::string(name));
    const Function* f = graph_.library()->Find(name);
    if (!added || f->body == nullptr || depth_ >= kMaxDepth) return it->second;
    std::vector<const Node*> asked;
    for (const Endpoint& e : f->FlatResults()) asked.push_back(e.node);
    for (const auto& [result, node] : f->control_results) asked.push_back(node);
    const auto found = shapes_.functions.find(name);
    static const auto* unknown = new ShapeTable();
    ++depth_;
    const GraphEstimate estimate =
        Of(*f->body, found == shapes_.functions.end() ? *unknown : found->second, {}, asked);
    --depth_;
    return functions_[std::string(name)] = estimate;
  }

  const Graph& graph_;
  Placement placement_;
  const ModelShapes shapes_;
  std::map<std::string, GraphEstimate, std::less<>> functions_;
  int depth_ = 0;
};

}  // namespace

GraphEstimate EstimateGraph(const Graph& graph, std::span<const std::string> feeds,
                            std::span<const std::string> fetches,
                            std::span<const DeviceProperties> devices) {
  return GraphEstimator(graph, devices).OfGraph(feeds, fetches);
}

}  // namespace smelt
