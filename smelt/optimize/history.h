// What the passes made of a graph and of its functions, step by step: differences, not copies.
#ifndef SMELT_OPTIMIZE_HISTORY_H_
#define SMELT_OPTIMIZE_HISTORY_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "smelt/optimize/run_passes.h"

namespace smelt {

class ShapeTable;

// Not thread safe.
class OptimizationHistory {
 public:
  // A node as some passes left it. Numbers are positions in texts().
  struct Node {
    int name = 0, op = 0, device = 0;
    // In the units of docs/cost_model.md, as shapes were known when the node became what it is.
    int64_t cost = 0;
    std::vector<int> attrs;    // "T=float"; long values are cut
    std::vector<int> outputs;  // "float[?,3]"
    // Source and output; -1 for a control edge. These stand last, in the order of names.
    std::vector<std::pair<int, int>> inputs;
    std::vector<int> calls;  // functions of the library

    // Whether a pass changed it: cost and shapes follow from the rest of the graph.
    bool SameAs(const Node& other) const;
  };
  // A pass, and what it did to the graph.
  struct Step {
    std::string pass;
    PassRun::Outcome outcome = PassRun::Outcome::kUnchanged;
    absl::Duration time;
    int nodes = 0;  // after it
    // false: what it did stands in a later step, as there was too much to keep.
    bool kept = true;
    std::vector<Node> put;  // added or changed
    std::vector<int> gone;  // names
    std::string why_undone;
  };
  struct GraphSteps {
    std::string name;          // a function's; empty: the main graph
    std::vector<Node> before;  // inputs before readers, where there is no cycle
    std::vector<Step> steps;
  };

  // Keeps differences while they hold no more than so many numbers, of all graphs together. What
  // stands at the beginning and at the end is kept whatever it holds.
  explicit OptimizationHistory(int64_t most = 4'000'000) : left_(most) {}

  // The graph before the first pass; of the main graph (empty), its library's functions as well.
  void Begin(absl::string_view name, const Graph& graph);
  // The graph after a pass. REQUIRES: Begin of the graph that run.graph names.
  void Add(const PassRun& run, const Graph& graph);
  // Nothing is added any more: what steps left out comes to the last one of its graph.
  void End();

  const std::vector<GraphSteps>& graphs() const { return graphs_; }
  const std::vector<std::string>& texts() const { return texts_; }
  // The position of a text, which is added where it is not there.
  int Text(absl::string_view text);

 private:
  using Nodes = absl::flat_hash_map<int, Node>;  // by name
  struct State {
    size_t index = 0;       // in graphs_
    Nodes shown;            // as the steps so far have it
    std::vector<Node> now;  // where the last step left something out
    size_t last = 0;        // the step that `now` belongs to
    bool behind = false;
  };

  State& StateOf(absl::string_view name);
  std::vector<Node> Snapshot(const Graph& graph);
  Node VersionOf(const smelt::Node& node, const Graph& graph, const ShapeTable& shapes);
  static void Differences(std::vector<Node> nodes, State& state, Step& step);

  int64_t left_;
  std::vector<GraphSteps> graphs_;
  absl::flat_hash_map<std::string, State> states_;
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, int> text_ids_;
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_HISTORY_H_
