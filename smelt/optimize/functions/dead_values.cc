#include "smelt/optimize/functions/dead_values.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/op_facts.h"

namespace smelt {
namespace {

constexpr OpSet kKills = {"Switch", "RefSwitch", "_SwitchN"};
constexpr OpSet kTurns = {"NextIteration", "RefNextIteration"};
constexpr OpSet kJoins = {"Merge", "RefMerge"};
constexpr OpSet kLeaves = {"Exit", "RefExit"};
constexpr OpSet kBegins = {"Enter", "RefEnter"};

// Beyond that all of them are waited for: following each through the body would take too long.
constexpr size_t kMostFollowed = 16;

}  // namespace

DeadValues::DeadValues(const Graph& graph) : marked_(static_cast<size_t>(graph.max_id()), false) {
  std::vector<const Node*> todo;
  std::vector<const Node*> exits;
  bool loop_may_die = false;
  const auto reach = [&](const Node* n) {
    if (Marked(*n)) return;
    Mark(*n);
    todo.push_back(n);
  };
  const auto spread = [&] {
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      loop_may_die = loop_may_die || n->Is(kBegins);
      for (const Use& use : n->uses()) {
        // What comes around was alive, and what leaves a loop does so in its last turn.
        if (n->Is(kTurns) && use.node->Is(kJoins)) continue;
        if (use.node->Is(kLeaves) && !use.is_control()) {
          exits.push_back(use.node);
        } else {
          reach(use.node);
        }
      }
    }
  };
  for (const Node* n : graph.Nodes()) {
    if (!n->Is(kKills)) continue;
    for (const Use& use : n->uses()) {
      if (use.is_control()) continue;
      if (use.node->Is(kLeaves)) {
        exits.push_back(use.node);
      } else {
        reach(use.node);
      }
    }
  }
  spread();
  while (loop_may_die && !exits.empty()) {
    reach(exits.back());
    exits.pop_back();
    spread();
  }
}

bool DeadValues::Marked(const Node& n) const {
  const auto id = static_cast<size_t>(n.id());
  return id < marked_.size() && marked_[id];
}

void DeadValues::Mark(const Node& n) {
  const auto id = static_cast<size_t>(n.id());
  if (id >= marked_.size()) marked_.resize(id + 1, false);
  marked_[id] = true;
}

bool DeadValues::MayDie(Endpoint e) const { return e.node->Is(kKills) || Marked(*e.node); }

void DeadValues::AddBody(const std::vector<Node*>& body, bool together) {
  const absl::flat_hash_set<const Node*> inside(body.begin(), body.end());
  for (const Node* n : body) {
    // Outside are the identities of the arguments, and what all wait for.
    const auto dies = [&](const Endpoint& e) {
      if (inside.contains(e.node)) return MayDie(e);
      return !together && e.node->num_inputs() == 1 && MayDie(e.node->input(0));
    };
    const bool by_control = std::ranges::any_of(
        n->control_inputs(), [&](const Node* c) { return inside.contains(c) && Marked(*c); });
    if (by_control || std::ranges::any_of(n->inputs(), dies)) Mark(*n);
  }
}

std::vector<int> NotNeededByAll(const Function& f, const std::vector<int>& dying) {
  if (dying.size() > kMostFollowed) return dying;
  const std::vector<Endpoint> arguments = f.FlatArguments();
  std::vector<const Node*> given;
  for (const Endpoint& e : f.FlatResults()) given.push_back(e.node);
  for (const auto& [name, node] : f.control_results) given.push_back(node);
  for (const Node* n : f.body->Nodes()) {
    if (HasEffect(*n) && !n->Is("_Arg")) given.push_back(n);
  }
  std::vector<int> not_needed;
  for (const int i : dying) {
    if (static_cast<size_t>(i) >= arguments.size()) continue;
    const Node* argument = arguments[static_cast<size_t>(i)].node;
    absl::flat_hash_set<const Node*> reached = {argument};
    std::vector<const Node*> todo = {argument};
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      for (const Use& use : n->uses()) {
        // Of a Merge one input is enough.
        if (use.node->Is(kJoins) && !use.is_control()) continue;
        if (reached.insert(use.node).second) todo.push_back(use.node);
      }
    }
    const bool all = argument->num_outputs() == 1 &&
                     std::ranges::all_of(given, [&](const Node* n) { return reached.contains(n); });
    if (!all) not_needed.push_back(i);
  }
  return not_needed;
}

}  // namespace smelt
