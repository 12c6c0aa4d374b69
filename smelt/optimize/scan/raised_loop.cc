#include "smelt/optimize/scan/raised_loop.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace smelt {

void TakePlaces(Graph& graph, std::vector<RaisedLoop>& loops) {
  std::vector<Node*> gone;
  for (const RaisedLoop& loop : loops) {
    for (const auto& [from, to] : loop.outputs) graph.ReplaceAllUses(from, to);
    gone.insert(gone.end(), loop.old.begin(), loop.old.end());
    const absl::flat_hash_set<const Node*> old(loop.old.begin(), loop.old.end());
    for (Node* n : loop.old) {
      const bool waited_for = std::ranges::any_of(
          n->uses(), [&](const Use& use) { return use.is_control() && !old.contains(use.node); });
      if (waited_for) graph.ReplaceControlUses(n, loop.node);
    }
  }
  graph.Remove(gone);
}

void Undo(Graph& graph, std::vector<RaisedLoop>& loops) {
  std::vector<Node*> gone;
  for (const RaisedLoop& loop : loops) {
    gone.insert(gone.end(), loop.added.begin(), loop.added.end());
  }
  graph.Remove(gone);
  loops.clear();
}

}  // namespace smelt
