#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/memory/parts.h"

namespace smelt::memory {
namespace {

constexpr absl::string_view kHint = "_recompute_hint";
constexpr OpSet kCheapOps = {"Add",
                             "AddN",
                             "BiasAdd",
                             "Cast",
                             "Fill",
                             "FloorDiv",
                             "FloorMod",
                             "FusedBatchNorm",
                             "LeakyRelu",
                             "Mul",
                             "Neg",
                             "RealDiv",
                             "Reciprocal",
                             "Relu",
                             "Relu6",
                             "Reshape",
                             "Rsqrt",
                             "Sigmoid",
                             "Sqrt",
                             "Square",
                             "SquaredDifference",
                             "Sub",
                             "Tile",
                             "Transpose"};

// Nodes that are computed again together, and gradients that read them.
struct Group {
  std::vector<Node*> nodes;  // in topological order
  absl::flat_hash_set<const Node*> members;
  std::vector<Node*> targets;
};

class Recomputation {
 public:
  Recomputation(Graph& graph, const PassContext& context, absl::string_view scope, bool cheap_ones)
      : graph_(graph),
        context_(context),
        scope_(scope),
        inner_scope_(absl::StrCat("/", scope)),
        cheap_ones_(cheap_ones),
        budget_(graph) {}

  Status Run() {
    ASSIGN_OR_RETURN(order_, graph_.TopologicalOrder());
    Look();
    if (!any_) return OkStatus();
    // Groups are found before any is rewritten.
    std::vector<Group> groups;
    for (Node* n : order_) {
      if (visited_.contains(n) || !IsSeed(*n)) continue;
      Group group = GroupOf(n);
      if (!group.targets.empty()) groups.push_back(std::move(group));
    }
    for (const Group& group : groups) RETURN_IF_ERROR(Rewrite(group));
    return OkStatus();
  }

 private:
  size_t At(const Node& n) const { return static_cast<size_t>(n.id()); }
  bool IsTarget(const Node& n) const { return At(n) < is_target_.size() && is_target_[At(n)]; }
  bool IsCandidate(const Node& n) const {
    return At(n) < is_candidate_.size() && is_candidate_[At(n)];
  }

  void Look() {
    is_target_.resize(static_cast<size_t>(graph_.max_id()));
    is_candidate_.resize(is_target_.size());
    place_.resize(is_target_.size());
    for (size_t i = 0; i < order_.size(); ++i) {
      const Node& n = *order_[i];
      place_[At(n)] = static_cast<int>(i);
      is_target_[At(n)] =
          absl::StartsWith(n.name(), scope_) || absl::StrContains(n.name(), inner_scope_);
      control_flow_ |= n.Is(kControlFlow);
      writes_references_ |= TakesReference(n);
    }
    for (const Node* n : order_) {
      is_candidate_[At(*n)] = !IsTarget(*n) && MayRecompute(*n);
      any_ |= is_candidate_[At(*n)];
    }
  }

  bool MayRecompute(const Node& n) const {
    const bool hinted = n.attrs().Find(kHint) != nullptr;
    if (!hinted && !(cheap_ones_ && n.Is(kCheapOps))) return false;
    if (IsFed(n)) return Declined(n, "a request feeds it");
    if (control_flow_) return Declined(n, "what its gradients wait for may not run");
    if (!IsFreeOfSideEffect(n)) return Declined(n, "it has state, and another would have its own");
    if (n.Is(kDrawsNumbers)) return Declined(n, "it would draw other numbers");
    if (writes_references_ && !n.Is(kIdentityOps)) {
      for (const Endpoint& e : n.inputs()) {
        if (IsRef(e.node->output_types[static_cast<size_t>(e.port)])) {
          return Declined(n, "it would read a variable later");
        }
      }
    }
    return true;
  }

  bool Declined(const Node& n, absl::string_view why) const {
    return context_.Declined("Recompute", n, why);
  }

  template <typename F>
  static void ForEachInput(const Node& n, F visit) {
    for (const Endpoint& e : n.inputs()) visit(e.node);
    for (Node* c : n.control_inputs()) visit(c);
  }

  // A gradient reads it, and it reads none.
  bool IsSeed(const Node& n) const {
    if (!IsCandidate(n)) return false;
    bool reads_target = false;
    ForEachInput(n, [&](const Node* input) { reads_target |= IsTarget(*input); });
    return !reads_target &&
           std::ranges::any_of(n.uses(), [this](const Use& use) { return IsTarget(*use.node); });
  }

  // Candidates that are connected with it, without those that lead to no gradient.
  Group GroupOf(Node* seed) {
    std::vector<Node*> connected = {seed};
    absl::flat_hash_set<const Node*> in_reach = {seed};
    const auto reach = [&](Node* n) {
      if (IsCandidate(*n) && in_reach.insert(n).second) connected.push_back(n);
    };
    for (size_t i = 0; i < connected.size(); ++i) {
      ForEachInput(*connected[i], reach);
      for (const Use& use : connected[i]->uses()) reach(use.node);
    }
    visited_.insert(connected.begin(), connected.end());
    Group group;
    absl::flat_hash_set<const Node*> targets;
    const auto add = [&](Node* n) {
      if (in_reach.contains(n) && group.members.insert(n).second) group.nodes.push_back(n);
    };
    for (Node* n : connected) {
      for (const Use& use : n->uses()) {
        if (!IsTarget(*use.node)) continue;
        if (targets.insert(use.node).second) group.targets.push_back(use.node);
        add(n);
      }
    }
    for (size_t i = 0; i < group.nodes.size(); ++i) ForEachInput(*group.nodes[i], add);
    const auto by_place = [this](const Node* n) { return place_[At(*n)]; };
    std::ranges::sort(group.nodes, {}, by_place);
    std::ranges::sort(group.targets, {}, by_place);
    return group;
  }

  // The place of the first gradient that needs each node, itself or through others of the group.
  absl::flat_hash_map<const Node*, int> FirstNeeded(const Group& group) const {
    absl::flat_hash_map<const Node*, int> first;
    for (auto it = group.nodes.rbegin(); it != group.nodes.rend(); ++it) {
      int place = static_cast<int>(order_.size());
      for (const Use& use : (*it)->uses()) {
        if (IsTarget(*use.node)) place = std::min(place, place_[At(*use.node)]);
        if (const auto found = first.find(use.node); found != first.end()) {
          place = std::min(place, found->second);
        }
      }
      first[*it] = place;
    }
    return first;
  }

  // What the gradients read beside the group, in topological order: before a node is computed
  // again, all must be there that is there before the gradient that needs it.
  std::optional<std::vector<Node*>> OtherInputs(const Group& group) {
    std::vector<Node*> others;
    for (const Node* target : group.targets) {
      if (!budget_.Take(static_cast<int64_t>(target->inputs().size()) +
                        static_cast<int64_t>(target->control_inputs().size()))) {
        return std::nullopt;
      }
      ForEachInput(*target, [&](Node* input) {
        // What was recomputed before is not of the graph that was looked at.
        if (At(*input) < place_.size() && !group.members.contains(input)) others.push_back(input);
      });
    }
    std::ranges::sort(others, {}, [this](const Node* n) { return place_[At(*n)]; });
    others.erase(std::unique(others.begin(), others.end()), others.end());
    return others;
  }

  Status Rewrite(const Group& group) {
    for (const Node* n : group.nodes) {
      if (graph_.Find(absl::StrCat("Recomputed/", n->name())) != nullptr ||
          graph_.Find(absl::StrCat("RecomputeTrigger/", n->name())) != nullptr) {
        Declined(*group.nodes[0], "names of what is computed again are taken");
        return OkStatus();
      }
    }
    const std::optional<std::vector<Node*>> others = OtherInputs(group);
    if (!others) {
      Declined(*group.nodes[0], "too many gradients read too much");
      return OkStatus();
    }
    const auto first = FirstNeeded(group);
    std::vector<Node*> by_need = group.nodes;
    std::ranges::sort(by_need, [&](const Node* a, const Node* b) {
      const int x = first.at(a), y = first.at(b);
      return x != y ? x < y : a->name() > b->name();
    });
    absl::flat_hash_map<const Node*, Node*> triggers;
    Node* before = nullptr;
    auto other = others->begin();
    for (const Node* n : by_need) {
      ASSIGN_OR_RETURN(Node * trigger,
                       graph_.AddNode(absl::StrCat("RecomputeTrigger/", n->name()), "NoOp"));
      trigger->device = n->device;
      std::vector<Node*> waits;
      if (before != nullptr) waits.push_back(before);
      for (; other != others->end() && place_[At(**other)] < first.at(n); ++other) {
        waits.push_back(*other);
      }
      graph_.SetControlInputs(trigger, std::move(waits));
      triggers[n] = before = trigger;
    }
    return Copy(group, triggers);
  }

  Status Copy(const Group& group, const absl::flat_hash_map<const Node*, Node*>& triggers) {
    absl::flat_hash_map<const Node*, Node*> copies;
    // TensorFlow goes by names: those of other outputs are not those of the nodes.
    const auto copied = [&](Endpoint e) {
      const auto it = copies.find(e.node);
      return e.port != 0 || it == copies.end() ? e : Endpoint{it->second, 0};
    };
    for (Node* n : group.nodes) {
      std::vector<Endpoint> inputs;
      for (const Endpoint& e : n->inputs()) inputs.push_back(copied(e));
      AttrMap attrs = n->attrs();
      attrs.Erase("_root");
      ASSIGN_OR_RETURN(Node * copy, graph_.Add(absl::StrCat("Recomputed/", n->name()), n->op(),
                                               inputs, std::move(attrs)));
      copy->device = n->device;
      copy->extra = n->extra;
      for (Node* c : n->control_inputs()) graph_.AddControlInput(copy, c);
      graph_.AddControlInput(copy, triggers.at(n));
      copies[n] = copy;
      context_.Fired("Recompute", *n);
    }
    for (Node* target : group.targets) {
      for (int i = 0; i < target->num_inputs(); ++i) {
        const Endpoint e = copied(target->input(i));
        if (!(e == target->input(i))) graph_.SetInput(target, i, e);
      }
    }
    return OkStatus();
  }

  Graph& graph_;
  const PassContext& context_;
  const std::string scope_, inner_scope_;
  const bool cheap_ones_;
  Budget budget_;
  std::vector<Node*> order_;
  std::vector<bool> is_target_, is_candidate_;  // by id, of the graph as it was
  std::vector<int> place_;                      // in order_, by id
  bool any_ = false, control_flow_ = false, writes_references_ = false;
  absl::flat_hash_set<const Node*> visited_;
};

}  // namespace

Status Recompute(Graph& graph, const PassContext& context, absl::string_view scope,
                 bool cheap_ones) {
  return Recomputation(graph, context, scope, cheap_ones).Run();
}

}  // namespace smelt::memory
