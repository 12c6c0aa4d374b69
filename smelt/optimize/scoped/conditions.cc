#include "smelt/optimize/scoped/conditions.h"

#include <algorithm>
#include <iterator>

namespace smelt {
namespace {

constexpr OpSet kChooses = {"Switch", "RefSwitch"};
constexpr OpSet kJoins = {"Merge", "RefMerge"};
constexpr OpSet kLeaves = {"Exit", "RefExit"};
constexpr OpSet kTurns = {"NextIteration", "RefNextIteration"};

// Branches are seldom deeper; a graph of nothing but branches has as many sets as nodes.
constexpr size_t kMostConditions = 16;
constexpr int kUnknownCondition = -1;

}  // namespace

int Conditions::Intern(Set set) {
  if (set.size() > kMostConditions) return kUnknownCondition;
  const auto [it, fresh] = numbers_.try_emplace(set, static_cast<int>(sets_.size()));
  if (fresh) sets_.push_back(std::move(set));
  return it->second;
}

int Conditions::Union(int a, int b) {
  if (a == b) return a;
  if (a == kUnknownCondition || b == kUnknownCondition) return kUnknownCondition;
  const auto [it, fresh] = unions_.try_emplace(std::minmax(a, b), kUnknownCondition);
  if (!fresh) return it->second;
  Set both;
  std::ranges::set_union(sets_[static_cast<size_t>(a)], sets_[static_cast<size_t>(b)],
                         std::back_inserter(both));
  return it->second = Intern(std::move(both));
}

StatusOr<Conditions> Conditions::Of(const Graph& graph) {
  Conditions c;
  const int always = c.Intern({});
  c.of_.assign(static_cast<size_t>(graph.max_id()), kUnknownCondition);
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  for (const Node* n : order) {
    int now = always;
    const auto add = [&](int other) { now = c.Union(now, other); };
    const auto id = [](const Node* of) { return static_cast<size_t>(of->id()); };
    for (const Endpoint& e : n->inputs()) {
      // The first turn tells for all.
      if (n->Is(kJoins) && e.node->Is(kTurns)) continue;
      add(c.of_[id(e.node)]);
      if (e.node->Is(kChooses)) add(c.Intern({{e.node->input(1).node->id(), e.port}}));
    }
    for (const Node* before : n->control_inputs()) add(c.of_[id(before)]);
    if (now > always && (n->Is(kJoins) || n->Is(kLeaves))) {
      // A Merge runs whichever side did; a loop is left once, whatever its last turn was.
      Set left;
      const Set& set = c.sets_[static_cast<size_t>(now)];
      const Node* from = n->input(0).node;
      const int loop = n->Is(kLeaves) && from->Is(kChooses) ? from->input(1).node->id() : -1;
      for (const auto& [predicate, side] : set) {
        const bool either =
            n->Is(kJoins) && std::ranges::binary_search(set, std::make_pair(predicate, 1 - side));
        if (!either && predicate != loop) left.emplace_back(predicate, side);
      }
      now = c.Intern(std::move(left));
    }
    c.of_[id(n)] = now;
  }
  return c;
}

int Conditions::of(const Node& node) const {
  const auto id = static_cast<size_t>(node.id());
  return id < of_.size() ? of_[id] : kUnknownCondition;
}

}  // namespace smelt
