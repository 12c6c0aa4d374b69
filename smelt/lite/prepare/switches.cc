// What Switch and Merge choose between, as If nodes.
#include <algorithm>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/prepare/functional.h"
#include "smelt/lite/prepare/part.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr OpSet kChoosing = {"Switch", "RefSwitch"};
constexpr OpSet kJoining = {"Merge", "RefMerge"};
constexpr OpSet kOfLoops = {"Enter", "RefEnter", "NextIteration", "RefNextIteration", "LoopCond"};

// A choice: what is tested, by node id and port, and how it went.
using Taken = std::tuple<int, int, bool>;
// What must have been chosen for a node to run.
using State = std::set<Taken>;

Taken Other(const Taken& t) { return {std::get<0>(t), std::get<1>(t), !std::get<2>(t)}; }

// What one Merge brings together.
struct Joint {
  Node* merge = nullptr;
  Taken choice;            // true was chosen
  int inputs[2] = {0, 0};  // by choice
};

class Switches {
 public:
  explicit Switches(Graph& graph) : graph_(graph) {}

  // Replaces what one tested value chooses. False: there is nothing left that it can do.
  StatusOr<bool> Step() {
    RETURN_IF_ERROR(FindStates());
    const Joint* first = nullptr;
    for (const Joint& j : joints_) {
      if (states_[j.merge].empty()) {
        first = &j;
        break;
      }
    }
    if (first == nullptr) return false;
    const Taken choice = first->choice;
    // Those that read, by whatever way, what another of them gives come later.
    absl::flat_hash_set<const Node*> behind;
    std::vector<Joint> group;
    for (const Node* n : order_) {
      const auto late = [&](const Node* from) { return behind.contains(from); };
      if (std::ranges::any_of(n->inputs(), [&](const Endpoint& e) { return late(e.node); }) ||
          std::ranges::any_of(n->control_inputs(), late)) {
        behind.insert(n);
        continue;
      }
      if (!n->Is(kJoining) || !states_[n].empty()) continue;
      const auto joint = std::ranges::find(joints_, n, &Joint::merge);
      if (joint == joints_.end() || joint->choice != choice) continue;
      group.push_back(*joint);
      behind.insert(n);
    }
    RETURN_IF_ERROR(Replace(choice, group, behind));
    return true;
  }

 private:
  Taken ChoiceOf(const Node& n, bool way) const {
    const Endpoint tested = BehindIdentities(n.input(1));
    return {tested.node->id(), tested.port, way};
  }
  State StateOf(Endpoint e) {
    State out = states_[e.node];
    if (e.node->Is(kChoosing)) out.insert(ChoiceOf(*e.node, e.port == 1));
    return out;
  }

  Status FindStates() {
    states_.clear();
    joints_.clear();
    ASSIGN_OR_RETURN(order_, graph_.TopologicalOrder());
    for (Node* n : order_) {
      if (n->Is(kJoining)) {
        RETURN_IF_ERROR(Join(n));
        continue;
      }
      State state;
      for (const Endpoint& e : n->inputs()) state.merge(StateOf(e));
      for (const Node* before : n->control_inputs()) {
        const State& more = states_[before];
        state.insert(more.begin(), more.end());
      }
      states_[n] = std::move(state);
    }
    return OkStatus();
  }

  Status Join(Node* n) {
    if (n->num_inputs() != 2) return Unimplemented("'", n->name(), "' merges more than two values");
    const State a = StateOf(n->input(0)), b = StateOf(n->input(1));
    for (const Taken& t : a) {
      if (!b.contains(Other(t))) continue;
      State x = a, y = b;
      x.erase(t);
      y.erase(Other(t));
      if (x != y) continue;
      const bool first = std::get<2>(t);
      states_[n] = std::move(x);
      joints_.push_back({n, first ? t : Other(t), {first ? 1 : 0, first ? 0 : 1}});
      return OkStatus();
    }
    return Unimplemented("'", n->name(), "' merges values that one test does not choose between");
  }

  PartBorder BorderOf(const Taken& choice) {
    PartBorder border;
    border.place = [this, choice](Endpoint e) -> PartBorder::Place {
      // What the same test lets through is the value itself.
      while (e.node->Is(kChoosing) && ChoiceOf(*e.node, e.port == 1) == choice)
        e = e.node->input(0);
      return {e, !StateOf(e).contains(choice)};
    };
    border.wait = [this, choice](const Node& n) {
      return states_[&n].contains(choice) ? PartBorder::Wait::kInside : PartBorder::Wait::kOutside;
    };
    return border;
  }

  Status Replace(const Taken& choice, const std::vector<Joint>& group,
                 const absl::flat_hash_set<const Node*>& behind) {
    const Endpoint tested = {graph_.NodeOf(std::get<0>(choice)), std::get<1>(choice)};
    Captures captures;
    std::unique_ptr<Graph> parts[2];
    absl::flat_hash_set<Node*> moved;
    for (const bool way : {false, true}) {
      const Taken taken = way ? choice : Other(choice);
      std::vector<Endpoint> results;
      for (const Joint& j : group) results.push_back(j.merge->input(j.inputs[way ? 1 : 0]));
      std::vector<Node*> effects;
      for (Node* n : order_) {
        if (!states_[n].contains(taken) || !HasEffect(*n) || n->Is(kJoining)) continue;
        if (behind.contains(n)) continue;
        effects.push_back(n);
        moved.insert(n);
      }
      ASSIGN_OR_RETURN(parts[way ? 1 : 0],
                       CutPart(graph_, results, effects, BorderOf(taken), captures));
    }
    for (const bool way : {false, true}) {
      // Which of its inputs a Merge took.
      Graph& part = *parts[way ? 1 : 0];
      auto index = static_cast<int64_t>(group.size());
      for (const Joint& j : group) {
        const auto number = static_cast<int32_t>(j.inputs[way ? 1 : 0]);
        if (j.merge->NumUses(1) == 0) continue;
        Node* value = part.AddConst("value_index", Tensor::Scalar(number));
        AttrMap attrs;
        attrs.Set("T", Dtype::kInt32);
        attrs.Set("index", index++);
        RETURN_IF_ERROR(
            part.Add("result", "_Retval", {Endpoint{value, 0}}, std::move(attrs)).status());
      }
      RETURN_IF_ERROR(SwitchesToBranches(part));
    }
    return Build(tested, group, std::move(parts[1]), std::move(parts[0]), captures, moved);
  }

  Status Build(Endpoint tested, const std::vector<Joint>& group, std::unique_ptr<Graph> then,
               std::unique_ptr<Graph> otherwise, const Captures& captures,
               const absl::flat_hash_set<Node*>& moved) {
    const std::string name = group[0].merge->name();
    std::vector<Endpoint> inputs = {tested};
    DtypeVector in, out;
    for (const Endpoint& e : captures.values) {
      inputs.push_back(e);
      in.push_back(BaseType(e.node->output_types[static_cast<size_t>(e.port)]));
    }
    for (const Joint& j : group) out.push_back(BaseType(j.merge->output_types[0]));
    for (const Joint& j : group) {
      if (j.merge->NumUses(1) > 0) out.push_back(Dtype::kInt32);
    }
    ASSIGN_OR_RETURN(auto of_then, AddPart(graph_, std::move(then), name + "_then", captures));
    ASSIGN_OR_RETURN(auto of_else, AddPart(graph_, std::move(otherwise), name + "_else", captures));
    AttrMap attrs;
    attrs.Set("Tcond", Dtype::kBool);
    attrs.Set("Tin", in);
    attrs.Set("Tout", out);
    attrs.Set("then_branch", std::move(of_then));
    attrs.Set("else_branch", std::move(of_else));
    ASSIGN_OR_RETURN(Node * branch, graph_.Add(name, moved.empty() ? "StatelessIf" : "If", inputs,
                                               std::move(attrs)));
    std::vector<Node*> waits(captures.waits.begin(), captures.waits.end());
    std::ranges::sort(waits, {}, &Node::id);
    graph_.SetControlInputs(branch, std::move(waits));
    int port = 0, index = static_cast<int>(group.size());
    for (const Joint& j : group) {
      graph_.ReplaceAllUses({j.merge, 0}, {branch, port++});
      if (j.merge->NumUses(1) > 0) graph_.ReplaceAllUses({j.merge, 1}, {branch, index++});
      graph_.ReplaceControlUses(j.merge, branch);
    }
    std::vector<Node*> kept = Roots(graph_);
    for (Node* n : graph_.Nodes()) {
      if (moved.contains(n)) {
        n->EraseAttr("_root");
        graph_.ReplaceControlUses(n, branch);
      } else if (n->Is("_Arg") || HasEffect(*n)) {
        kept.push_back(n);
      }
    }
    std::erase_if(kept, [&](const Node* n) { return moved.contains(const_cast<Node*>(n)); });
    graph_.Prune(kept);
    return OkStatus();
  }

  Graph& graph_;
  std::vector<Node*> order_;
  absl::flat_hash_map<const Node*, State> states_;
  std::vector<Joint> joints_;
};

void SayWhy(Graph& graph, const Status& why) {
  for (Node* n : graph.Nodes()) {
    if (n->Is(kJoining) || n->Is(kChoosing)) {
      n->AttrsToChange().Set(kWhyNot, std::string(why.message()));
    }
  }
}

}  // namespace

Status SwitchesToBranches(Graph& graph) {
  bool any = false;
  for (const Node* n : graph.Nodes()) {
    // The loop that stays has switches of its own.
    if (n->Is(kOfLoops)) return OkStatus();
    any = any || n->Is(kJoining);
  }
  for (Switches switches(graph); any;) {
    const StatusOr<bool> more = switches.Step();
    if (absl::IsUnimplemented(more.status())) {
      SayWhy(graph, more.status());
      return OkStatus();
    }
    ASSIGN_OR_RETURN(any, more);
  }
  return OkStatus();
}

Status MakeFunctional(Graph& graph) {
  bool any = false;
  for (const Node* n : graph.Nodes()) {
    any = any || n->Is(kJoining) || n->Is(kChoosing) || n->Is(kOfLoops) || n->Is("TensorArrayV3");
  }
  if (!any) return OkStatus();
  RETURN_IF_ERROR(ArraysToLists(graph));
  RETURN_IF_ERROR(FramesToLoops(graph));
  return SwitchesToBranches(graph);
}

}  // namespace smelt
