#include <algorithm>
#include <map>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/graph/constant.h"
#include "smelt/optimize/constant/evaluate.h"
#include "smelt/optimize/loop/parts.h"

namespace smelt {
namespace {

constexpr OpSet kComparisons = {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal"};
constexpr OpSet kEnterOps = {"Enter", "RefEnter"};
constexpr OpSet kTurnOps = {"NextIteration", "RefNextIteration"};

// Sides that turn out to hold what must stay are followed in vain, again for each Switch.
constexpr int64_t kStepsPerNode = 100;

std::optional<Tensor> ConstantOf(const Node& n) {
  if (!n.Is("Const") || IsFed(n)) return std::nullopt;
  return ConstantTensor(n);
}

std::optional<bool> TruthOf(const std::optional<Tensor>& t) {
  if (!t || t->dtype() != Dtype::kBool || t->num_elements() != 1) return std::nullopt;
  return t->flat<bool>()[0];
}

class DeadBranches {
 public:
  DeadBranches(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), steps_left_(kStepsPerNode * int64_t{graph.num_nodes()}) {}

  Status Run() {
    std::vector<Node*> switches;
    for (Node* n : graph_.Nodes()) {
      if (n->Is("Switch")) switches.push_back(n);
    }
    std::vector<std::pair<Node*, int>> constant;  // with the port that lives
    for (Node* s : switches) {
      if (IsRoot(*s)) continue;
      const std::optional<bool> predicate = TruthOf(ConstantOf(*s->input(1).node));
      std::optional<int> port;
      if (predicate) port = *predicate ? 0 : 1;
      if (!predicate && NeverTurns(*s)) port = 1;
      if (!port || !Follow(s, *port)) continue;
      if (predicate) constant.emplace_back(s, 1 - *port);
      context_.Fired("RemoveDeadBranch", *s);
    }
    for (const auto& [s, port] : constant) {
      if (!dead_.contains(s)) RETURN_IF_ERROR(MakeIdentity(s, port));
    }
    return RemoveDead();
  }

 private:
  // Is the condition of the loop whose variable goes through `s` false before the first turn? Found
  // out where it compares a variable with a constant and the variable's first value is another.
  bool NeverTurns(const Node& s) {
    const Node* condition = s.input(1).node;
    if (!condition->Is("LoopCond") || !s.input(0).node->Is("Merge")) return false;
    if (const auto known = never_turns_.find(condition); known != never_turns_.end()) {
      return known->second;
    }
    return never_turns_[condition] = FirstIsFalse(*condition->input(0).node);
  }

  bool FirstIsFalse(const Node& compared) {
    if (!compared.Is(kComparisons) || compared.num_inputs() != 2 || IsFed(compared)) return false;
    std::vector<Tensor> values;
    int variables = 0;
    for (const Endpoint& e : compared.inputs()) {
      std::optional<Tensor> value = ConstantOf(*e.node);
      if (!value && e.node->Is("Merge") && e.port == 0) {
        ++variables;
        value = FirstValue(*e.node);
      }
      if (!value || value->num_elements() != 1) return false;
      values.push_back(*std::move(value));
    }
    if (variables != 1 || values[0].dtype() != values[1].dtype()) return false;
    const auto result = evaluator_.Evaluate(compared, std::move(values));
    return result.ok() && result->size() == 1 && TruthOf((*result)[0]) == false;
  }

  static std::optional<Tensor> FirstValue(const Node& merge) {
    if (IsFed(merge)) return std::nullopt;
    std::optional<Tensor> first;
    for (const Endpoint& e : merge.inputs()) {
      if (e.node->Is(kTurnOps)) continue;
      if (first || !e.node->Is(kEnterOps) || IsFed(*e.node)) return std::nullopt;
      first = ConstantOf(*e.node->input(0).node);
      if (!first) return std::nullopt;
    }
    return first;
  }

  // Notes what dies with the side `port`; nothing where it reaches what must stay.
  bool Follow(Node* s, int port) {
    std::vector<const Node*> died;
    std::vector<std::pair<Node*, int>> lost;  // of a Merge, one input
    std::vector<Use> todo;
    const auto spread = [&](const Node& n) {
      for (const Use& use : n.OrderedUses()) todo.push_back(use);
    };
    for (const Use& use : s->OrderedUses()) {
      if (!use.is_control() && use.port() == port) todo.push_back(use);
    }
    std::string why;
    while (!todo.empty() && why.empty()) {
      const Use use = todo.back();
      Node* n = use.node;
      todo.pop_back();
      if (dead_.contains(n)) continue;
      if (--steps_left_ < 0) {
        why = "the graph has too many branches to follow";
      } else if (IsRoot(*n)) {
        why = absl::StrCat("'", n->name(), "' must stay");
      } else if (n->Is("ControlTrigger")) {
        why = "a ControlTrigger runs all the same";
      } else if (n->Is({"Merge", "RefMerge"})) {
        std::set<int>& inputs = dead_inputs_[n];
        if (n->num_inputs() != 2) {
          why = absl::StrCat("'", n->name(), "' has more than two inputs");
        } else if (n->NumUses(1) > 0) {
          why = absl::StrCat("which input '", n->name(), "' took is read");
        } else if (use.is_control() || !n->control_inputs().empty()) {
          why = absl::StrCat("'", n->name(), "' waits for others");
        } else if (inputs.insert(use.input).second) {
          lost.emplace_back(n, use.input);
          if (inputs.size() == 2) {
            dead_.insert(n);
            died.push_back(n);
            spread(*n);
          }
        }
      } else {
        dead_.insert(n);
        died.push_back(n);
        spread(*n);
      }
    }
    if (why.empty()) return true;
    for (const Node* n : died) dead_.erase(n);
    for (const auto& [merge, input] : lost) dead_inputs_[merge].erase(input);
    return context_.Declined("RemoveDeadBranch", *s, why);
  }

  // The value always takes one side.
  Status MakeIdentity(Node* s, int port) {
    const Endpoint value = s->input(0);
    Node* predicate = s->input(1).node;
    for (const Use& use : s->OrderedUses()) {
      if (use.is_control() || use.port() != port || dead_.contains(use.node)) continue;
      graph_.SetInput(use.node, use.input, {s, 0});
      // Who reads the value waits for it anyway.
      graph_.RemoveControlInput(use.node, s);
    }
    graph_.SetOp(s, "Identity");
    graph_.SetInputs(s, {value});
    graph_.AddControlInput(s, predicate);
    // Nodes that read the other side go with it.
    return graph_.ResolveTypes(s);
  }

  Status RemoveDead() {
    for (const auto& [id, merge_inputs] : ByAge()) {
      Node* merge = graph_.NodeOf(id);
      if (dead_.contains(merge) || merge_inputs.size() != 1) continue;
      const Endpoint live = merge->input(1 - *merge_inputs.begin());
      merge->EraseAttr("N");
      graph_.SetOp(merge, "Identity");
      graph_.SetInputs(merge, {live});
      RETURN_IF_ERROR(graph_.ResolveTypes(merge));
    }
    std::vector<Node*> gone;
    for (Node* n : graph_.Nodes()) {
      if (dead_.contains(n)) gone.push_back(n);
    }
    graph_.Remove(gone);
    return OkStatus();
  }

  // So that results do not depend on hashes.
  std::map<int, std::set<int>> ByAge() const {
    std::map<int, std::set<int>> inputs;
    for (const auto& [merge, lost] : dead_inputs_) inputs[merge->id()] = lost;
    return inputs;
  }

  Graph& graph_;
  const PassContext& context_;
  Evaluator evaluator_;
  int64_t steps_left_;
  absl::flat_hash_set<const Node*> dead_;
  absl::flat_hash_map<Node*, std::set<int>> dead_inputs_;  // of each Merge
  absl::flat_hash_map<const Node*, bool> never_turns_;     // by LoopCond
};

}  // namespace

Status RemoveDeadBranches(Graph& graph, const PassContext& context) {
  if (!context.fetch_known) return OkStatus();
  return DeadBranches(graph, context).Run();
}

}  // namespace smelt
