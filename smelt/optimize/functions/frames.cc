#include "smelt/optimize/functions/frames.h"

#include <deque>

#include "absl/container/flat_hash_map.h"

namespace smelt {
namespace {

constexpr OpSet kEnters = {"Enter", "RefEnter"};
constexpr OpSet kExits = {"Exit", "RefExit"};
constexpr OpSet kMerges = {"Merge", "RefMerge"};

}  // namespace

Frames::Frames(const Graph& graph) : enters_(static_cast<size_t>(graph.max_id()), nullptr) {
  absl::flat_hash_map<std::string, Node*> by_name;
  absl::flat_hash_map<const Node*, Node*> outer;  // by Enter: one of the loop around its own
  std::vector<bool> seen(enters_.size(), false);
  std::deque<Node*> todo;
  const auto visit = [&](Node* n, Node* enter) {
    const auto id = static_cast<size_t>(n->id());
    if (seen[id]) return;
    seen[id] = true;
    if (n->Is(kEnters)) {
      const auto [it, first] = by_name.try_emplace(n->String("frame_name"), n);
      if (first) outer[n] = enter;
      enter = it->second;
    }
    enters_[id] = enter;
    todo.push_back(n);
  };
  for (Node* n : graph.Nodes()) {
    if (n->inputs().empty() && n->control_inputs().empty()) visit(n, nullptr);
  }
  if (todo.empty()) return;
  while (!todo.empty()) {
    const Node* n = todo.front();
    todo.pop_front();
    Node* enter = enters_[static_cast<size_t>(n->id())];
    if (n->Is(kExits) && enter != nullptr) enter = outer[enter];
    for (const Use& use : n->OrderedUses()) visit(use.node, enter);
  }
}

Node* Frames::StartOf(const Node& node) const {
  const auto id = static_cast<size_t>(node.id());
  if (id >= enters_.size() || enters_[id] == nullptr) return nullptr;
  Node* enter = enters_[id];
  if (enter->Bool("is_constant")) return enter;
  // Only its Merge runs in every turn.
  for (const Use& use : enter->OrderedUses()) {
    if (!use.is_control() && use.node->Is(kMerges)) return use.node;
  }
  return enter;
}

}  // namespace smelt
