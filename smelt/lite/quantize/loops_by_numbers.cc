#include "smelt/lite/quantize/loops_by_numbers.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace smelt {
namespace {

// Does a result of the condition come of a float argument?
bool ReadsFloats(const Graph& condition) {
  std::vector<const Node*> next;
  absl::flat_hash_set<const Node*> seen;
  for (const Node* n : condition.Nodes()) {
    if (n->Is("_Retval")) next.push_back(n);
  }
  while (!next.empty()) {
    const Node* n = next.back();
    next.pop_back();
    if (n->Is("_Arg") && n->output_types[0] == Dtype::kFloat) return true;
    for (const Endpoint& e : n->inputs()) {
      if (seen.insert(e.node).second) next.push_back(e.node);
    }
  }
  return false;
}

class LoopsByNumbers {
 public:
  explicit LoopsByNumbers(const LiteGraphs& graphs) : graphs_(graphs) {
    for (const LiteBody& body : graphs.bodies) bodies_[body.function] = body.graph.get();
  }

  absl::flat_hash_set<const Node*> Find() {
    for (const Graph* g : graphs_.All()) {
      for (const Node* n : g->Nodes()) {
        const FuncAttr* cond = n->Is("tfl.while") ? n->Func("cond") : nullptr;
        if (cond == nullptr) continue;
        const auto graph = bodies_.find(cond->name);
        if (graph != bodies_.end() && ReadsFloats(*graph->second)) AddCallees(*n);
      }
    }
    return std::move(nodes_);
  }

 private:
  void AddCallees(const Node& n) {
    ForEachFunc(n.attrs(), [&](const FuncAttr& f) {
      const auto graph = bodies_.find(f.name);
      if (graph == bodies_.end() || !seen_.insert(f.name).second) return;
      for (const Node* inside : graph->second->Nodes()) {
        nodes_.insert(inside);
        AddCallees(*inside);
      }
    });
  }

  const LiteGraphs& graphs_;
  absl::flat_hash_map<std::string, const Graph*> bodies_;
  absl::flat_hash_set<std::string> seen_;
  absl::flat_hash_set<const Node*> nodes_;
};

}  // namespace

void DropWhereNumbersEnd(const LiteGraphs& graphs, LiteRanges& ranges) {
  if (graphs.bodies.empty()) return;
  const auto nodes = LoopsByNumbers(graphs).Find();
  absl::erase_if(ranges, [&](const auto& known) { return nodes.contains(known.first.first); });
}

}  // namespace smelt
