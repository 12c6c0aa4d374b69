// Loops of version 1 as While nodes.
#include <algorithm>
#include <map>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/prepare/functional.h"
#include "smelt/lite/prepare/part.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr OpSet kFrameEnters = {"Enter", "RefEnter"};
constexpr OpSet kFrameExits = {"Exit", "RefExit"};
constexpr OpSet kFrameMerges = {"Merge", "RefMerge"};
constexpr OpSet kFrameSwitches = {"Switch", "RefSwitch"};
constexpr OpSet kFrameNexts = {"NextIteration", "RefNextIteration"};

// One frame without others in it.
class Frame {
 public:
  Frame(Graph& graph, std::string name, std::vector<Node*> enters)
      : graph_(graph), name_(std::move(name)), enters_(std::move(enters)) {
    std::vector<Node*> todo = enters_;
    nodes_.insert(todo.begin(), todo.end());
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      if (n->Is(kFrameExits)) continue;
      for (const Use& use : n->uses()) {
        if (nodes_.insert(use.node).second) todo.push_back(use.node);
      }
    }
  }

  bool HasOthers() const {
    return std::ranges::any_of(nodes_, [&](const Node* n) {
      return n->Is(kFrameEnters) && n->String("frame_name") != name_;
    });
  }
  const std::vector<Node*>& enters() const { return enters_; }

  // UNIMPLEMENTED says why it stays; nothing was changed then.
  Status Replace() {
    RETURN_IF_ERROR(FindVariables());
    RETURN_IF_ERROR(CheckNodes());
    Captures captures;
    for (const Variable& v : variables_) captures.values.push_back({v.enter, 0});
    PartBorder border;
    border.place = [this](Endpoint e) { return Place(e); };
    border.wait = [this](const Node& n) {
      if (!nodes_.contains(&n)) return PartBorder::Wait::kOutside;
      return skeleton_.contains(&n) ? PartBorder::Wait::kNone : PartBorder::Wait::kInside;
    };
    ASSIGN_OR_RETURN(auto cond, CutPart(graph_, {loop_cond_->input(0)}, {}, border, captures));
    std::vector<Endpoint> results;
    for (const Variable& v : variables_) results.push_back(v.next->input(0));
    ASSIGN_OR_RETURN(auto body, CutPart(graph_, results, Effects(), border, captures));
    return Build(std::move(cond), std::move(body), captures);
  }

 private:
  struct Variable {
    Node *enter = nullptr, *merge = nullptr, *next = nullptr, *choice = nullptr;
    std::vector<Node*> exits;
  };

  Status FindVariables() {
    for (Node* enter : enters_) {
      skeleton_.insert(enter);
      Variable v{.enter = enter};
      for (const Use& use : enter->uses()) {
        if (use.is_control() || !use.node->Is(kFrameMerges)) continue;
        if (v.merge != nullptr) {
          return Unimplemented("'", enter->name(), "' enters more than one Merge");
        }
        v.merge = use.node;
      }
      if (v.merge == nullptr) continue;  // the same in each turn
      if (v.merge->num_inputs() != 2) {
        return Unimplemented("'", v.merge->name(), "' merges other values");
      }
      for (const Endpoint& e : v.merge->inputs()) {
        if (e.node != enter) v.next = e.node;
      }
      if (v.next == nullptr || !v.next->Is(kFrameNexts) || v.merge->NumUses(1) != 0) {
        return Unimplemented("'", v.merge->name(), "' merges other values");
      }
      RETURN_IF_ERROR(FindExits(v));
      skeleton_.insert({v.merge, v.next});
      if (v.choice != nullptr) skeleton_.insert(v.choice);
      skeleton_.insert(v.exits.begin(), v.exits.end());
      variables_.push_back(std::move(v));
    }
    if (loop_cond_ == nullptr) return Unimplemented("it has no LoopCond");
    skeleton_.insert(loop_cond_);
    for (size_t i = 0; i < variables_.size(); ++i) {
      by_node_[variables_[i].merge] = i;
      if (variables_[i].choice != nullptr) by_node_[variables_[i].choice] = i;
    }
    return OkStatus();
  }

  Status FindExits(Variable& v) {
    for (const Use& use : v.merge->uses()) {
      if (use.is_control() || !use.node->Is(kFrameSwitches) || use.input != 0) continue;
      Node* cond = BehindIdentities(use.node->input(1)).node;
      if (!cond->Is("LoopCond")) continue;
      if (v.choice != nullptr || (loop_cond_ != nullptr && loop_cond_ != cond)) {
        return Unimplemented("it has several conditions");
      }
      v.choice = use.node;
      loop_cond_ = cond;
    }
    if (v.choice == nullptr) return OkStatus();
    for (const Use& use : v.choice->uses()) {
      if (use.port() != 0) continue;
      if (!use.node->Is(kFrameExits)) {
        return Unimplemented("'", use.node->name(), "' reads a variable as the loop ends");
      }
      v.exits.push_back(use.node);
    }
    return OkStatus();
  }

  // Nothing but Exits leaves the loop, and no variable is read as it ends.
  Status CheckNodes() const {
    for (const Node* n : nodes_) {
      if (n->Is("_Retval") || IsFed(*n)) {
        return Unimplemented("'", n->name(), "' is asked for in its turns");
      }
      if ((n->Is(kFrameExits) || n->Is(kFrameNexts) || n->Is("LoopCond")) &&
          !skeleton_.contains(n)) {
        return Unimplemented("'", n->name(), "' is not known to be of it");
      }
    }
    return OkStatus();
  }

  PartBorder::Place Place(Endpoint e) const {
    const auto variable = by_node_.find(e.node);
    if (variable != by_node_.end()) return {{variables_[variable->second].enter, 0}, true};
    if (e.node->Is(kFrameEnters)) return {{e.node, 0}, true};
    return {e, !nodes_.contains(e.node)};
  }

  std::vector<Node*> Effects() const {
    std::vector<Node*> out;
    for (Node* n : nodes_) {
      if (!skeleton_.contains(n) && HasEffect(*n)) out.push_back(n);
    }
    std::ranges::sort(out, {}, &Node::id);
    return out;
  }

  Status Build(std::unique_ptr<Graph> cond, std::unique_ptr<Graph> body, Captures& captures) {
    const bool effect = !Effects().empty();
    // What stays the same goes around.
    for (size_t i = variables_.size(); i < captures.values.size(); ++i) {
      const Endpoint value = captures.values[i];
      const Dtype type = BaseType(value.node->output_types[static_cast<size_t>(value.port)]);
      std::vector<Node*> args;
      for (Node* n : body->Nodes()) {
        if (n->Is("_Arg") && n->Int("index") == static_cast<int64_t>(i)) args.push_back(n);
      }
      if (args.empty()) {
        AttrMap attrs;
        attrs.Set("T", type);
        attrs.Set("index", static_cast<int64_t>(i));
        ASSIGN_OR_RETURN(args.emplace_back(), body->Add("same", "_Arg", {}, std::move(attrs)));
      }
      AttrMap attrs;
      attrs.Set("T", type);
      attrs.Set("index", static_cast<int64_t>(i));
      RETURN_IF_ERROR(
          body->Add("result", "_Retval", {Endpoint{args[0], 0}}, std::move(attrs)).status());
    }
    RETURN_IF_ERROR(SwitchesToBranches(*cond));
    RETURN_IF_ERROR(SwitchesToBranches(*body));
    std::vector<Endpoint> inputs;
    DtypeVector types;
    std::vector<Node*> waits(captures.waits.begin(), captures.waits.end());
    for (const Endpoint& e : captures.values) {
      inputs.push_back(e.node->Is(kFrameEnters) ? e.node->input(0) : e);
      types.push_back(
          BaseType(inputs.back().node->output_types[static_cast<size_t>(inputs.back().port)]));
    }
    for (const Node* enter : enters_) {
      waits.insert(waits.end(), enter->control_inputs().begin(), enter->control_inputs().end());
    }
    std::ranges::sort(waits, {}, &Node::id);
    AttrMap attrs;
    attrs.Set("T", types);
    ASSIGN_OR_RETURN(auto of_cond, AddPart(graph_, std::move(cond), name_ + "_cond", captures));
    ASSIGN_OR_RETURN(auto of_body, AddPart(graph_, std::move(body), name_ + "_body", captures));
    attrs.Set("cond", std::move(of_cond));
    attrs.Set("body", std::move(of_body));
    ASSIGN_OR_RETURN(Node * loop, graph_.Add(name_, effect ? "While" : "StatelessWhile", inputs,
                                             std::move(attrs)));
    graph_.SetControlInputs(loop, std::move(waits));
    for (size_t i = 0; i < variables_.size(); ++i) {
      for (Node* exit : variables_[i].exits) {
        graph_.ReplaceAllUses({exit, 0}, {loop, static_cast<int>(i)});
        graph_.ReplaceControlUses(exit, loop);
      }
    }
    const std::vector<Node*> gone(nodes_.begin(), nodes_.end());
    graph_.Remove(gone);
    return OkStatus();
  }

  Graph& graph_;
  const std::string name_;
  std::vector<Node*> enters_;
  absl::flat_hash_set<Node*> nodes_;
  absl::flat_hash_set<const Node*> skeleton_;  // what the loop stands for
  std::vector<Variable> variables_;            // that turns change
  absl::flat_hash_map<const Node*, size_t> by_node_;
  Node* loop_cond_ = nullptr;
};

}  // namespace

Status FramesToLoops(Graph& graph) {
  std::set<std::string> stay;
  for (bool changed = true; changed;) {
    changed = false;
    std::map<std::string, std::vector<Node*>> frames;
    for (Node* n : graph.Nodes()) {
      if (n->Is(kFrameEnters)) frames[n->String("frame_name")].push_back(n);
    }
    for (const auto& [name, enters] : frames) {
      if (stay.contains(name)) continue;
      Frame frame(graph, name, enters);
      if (frame.HasOthers()) continue;
      const Status done = frame.Replace();
      if (absl::IsUnimplemented(done)) {
        stay.insert(name);
        for (Node* enter : enters) {
          enter->AttrsToChange().Set(kWhyNot, absl::StrCat("of its loop: ", done.message()));
        }
        continue;
      }
      RETURN_IF_ERROR(done);
      changed = true;
      break;
    }
  }
  return OkStatus();
}

}  // namespace smelt
