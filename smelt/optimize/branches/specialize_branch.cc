#include "smelt/optimize/branches/specialize_branch.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/functions/common.h"

namespace smelt {
namespace {

constexpr absl::string_view kBeside = "loc:@";

// May an argument that brings the node's first output stand for waiting for the node? Of a Switch
// it may be dead where the node is not.
bool GivesToWaitFor(const Node& n) {
  return n.num_outputs() > 0 && !n.Is(kControlFlow) && !IsRef(n.output_types[0]) &&
         n.output_types[0] != Dtype::kInvalid;
}

// Names of one function's arguments and control results.
class BranchNames {
 public:
  std::string Free(std::string name) {
    std::string free = name;
    for (int i = 0; !taken_.insert(free).second; ++i) free = absl::StrCat(name, "_", i);
    return free;
  }

 private:
  absl::flat_hash_set<std::string> taken_;
};

std::string NameOf(const Node& from, int port) {
  return from.Is("_Arg") ? from.name() : absl::StrCat(from.name(), "_tfg_result_", port);
}

class BranchSpecializer {
 public:
  BranchSpecializer(const BranchPlan& plan, size_t branch, const BranchOperands& operands)
      : plan_(plan), branch_(branch), operands_(operands), old_(*plan.functions[branch]) {
    for (const auto& [i, about] : old_.arg_attrs) {
      if (i < 0 || i + 1 >= plan.node->num_inputs()) continue;
      const Endpoint e = plan.node->input(i + 1);
      known_.try_emplace({e.node, e.port}, &about);
    }
  }

  StatusOr<std::unique_ptr<Function>> Make(absl::string_view name) {
    ASSIGN_OR_RETURN(new_, old_.Clone(name));
    RETURN_IF_ERROR(RenameNodes());
    RETURN_IF_ERROR(AddArguments());
    RETURN_IF_ERROR(CopySunk());
    ReplaceArguments();
    NameControlResults();
    FollowColocation();
    return std::move(new_);
  }

 private:
  Graph& body() { return *new_->body; }

  Status RenameNodes() {
    const std::string suffix = absl::StrCat("_tfg_inlined_", plan_.node->name(), "_", branch_);
    const absl::flat_hash_set<const Node*> args(new_->args.begin(), new_->args.end());
    for (Node* n : body().Nodes()) {
      const std::string name =
          body().FreeName(absl::StrCat(n->name(), args.contains(n) ? "/argument" : suffix));
      if (!args.contains(n)) names_[n->name()] = name;
      RETURN_IF_ERROR(body().Rename(n, name));
    }
    return OkStatus();
  }

  Status AddArguments() {
    BranchNames names;
    std::map<int, AttrMap> arg_attrs;
    std::vector<ArgDef> inputs;
    for (size_t i = 0; i < operands_.values.size(); ++i) {
      const Endpoint e = operands_.values[i];
      ArgDef arg;
      arg.name = names.Free(NameOf(*e.node, e.port));
      arg.type = TypeOf(e);
      AttrMap attrs;
      attrs.Set("T", arg.type);
      attrs.Set("index", static_cast<int64_t>(i));
      ASSIGN_OR_RETURN(Node * node, body().Add(arg.name, "_Arg", {}, std::move(attrs)));
      arg.name = node->name();
      args_.push_back(node);
      inputs.push_back(std::move(arg));
      AttrMap& about = arg_attrs[static_cast<int>(i)];
      if (const auto known = known_.find({e.node, e.port}); known != known_.end()) {
        about = *known->second;
      }
      // TensorFlow says it of every argument that it makes.
      if (about.Find("_output_shapes") == nullptr) {
        const bool is_wait = static_cast<int>(i) >= operands_.first_wait;
        about.Set("_output_shapes",
                  std::vector<PartialShape>{is_wait ? PartialShape::Of({}) : PartialShape()});
      }
    }
    new_->signature.inputs = std::move(inputs);
    new_->arg_attrs = std::move(arg_attrs);
    return OkStatus();
  }

  // From what is read to what reads.
  Status CopySunk() {
    const auto& sunk = plan_.sunk[branch_];
    for (auto it = sunk.rbegin(); it != sunk.rend(); ++it) {
      const Node* n = *it;
      ASSIGN_OR_RETURN(
          Node * copy,
          AddCopy(body(), *n, absl::StrCat(n->name(), "_tfg_cf_sunk_", plan_.node->name())));
      sunk_names_[n->name()] = copy->name();
      copies_[n] = copy;
      moved_.insert(copy);
    }
    for (const Node* n : sunk) {
      Node* copy = copies_.at(n);
      std::vector<Endpoint> inputs;
      for (const Endpoint& e : n->inputs()) inputs.push_back(Here(e));
      body().SetInputs(copy, inputs);
      std::vector<Node*> controls;
      for (const Node* c : n->control_inputs()) {
        const auto moved = copies_.find(c);
        controls.push_back(moved != copies_.end()
                               ? moved->second
                               : args_[static_cast<size_t>(operands_.FindWait(c))]);
      }
      body().SetControlInputs(copy, std::move(controls));
    }
    return OkStatus();
  }

  // What the branch reads in place of a value of the caller.
  Endpoint Here(Endpoint e) {
    const auto moved = copies_.find(e.node);
    if (moved != copies_.end()) return {moved->second, e.port};
    return {args_[static_cast<size_t>(operands_.Find(e))], 0};
  }

  void ReplaceArguments() {
    const std::vector<Node*> old = std::move(new_->args);
    new_->args = args_;
    absl::flat_hash_map<const Node*, Endpoint> here;
    for (size_t i = 0; i < old.size(); ++i) {
      const Endpoint e = plan_.node->input(static_cast<int>(i) + 1);
      if (!copies_.contains(e.node) && operands_.Find(e) < 0) continue;
      here[old[i]] = Here(e);
      body().ReplaceAllUses({old[i], 0}, here[old[i]]);
      body().ReplaceControlUses(old[i], here[old[i]].node);
    }
    for (auto& result : new_->results) {
      for (Endpoint& e : result) {
        if (const auto it = here.find(e.node); it != here.end()) e = it->second;
      }
    }
    for (auto& [name, node] : new_->control_results) {
      if (const auto it = here.find(node); it != here.end()) node = it->second.node;
    }
    for (Node* n : old) body().Remove(n);
  }

  void NameControlResults() {
    BranchNames names;
    for (const Node* arg : args_) names.Free(arg->name());
    new_->signature.control_outputs.clear();
    for (auto& [name, node] : new_->control_results) {
      name = names.Free(NameOf(*node, node->num_outputs()));
      new_->signature.control_outputs.push_back(name);
    }
  }

  // Nodes that stood beside each other do so under their new names.
  void FollowColocation() {
    for (Node* n : body().Nodes()) {
      const auto classes = n->Get<std::vector<std::string>>("_class", {});
      if (classes.empty()) continue;
      const auto& names = moved_.contains(n) ? sunk_names_ : names_;
      std::vector<std::string> kept;
      for (const std::string& c : classes) {
        if (!absl::StartsWith(c, kBeside)) {
          kept.push_back(c);
        } else if (const auto it = names.find(c.substr(kBeside.size())); it != names.end()) {
          kept.push_back(absl::StrCat(kBeside, it->second));
        }
      }
      n->EraseAttr("_class");
      if (!kept.empty()) n->AttrsToChange().Set("_class", std::move(kept));
    }
  }

  const BranchPlan& plan_;
  const size_t branch_;
  const BranchOperands& operands_;
  const Function& old_;
  std::unique_ptr<Function> new_;
  std::vector<Node*> args_;
  // What the function says so far of arguments, by what they get.
  absl::flat_hash_map<std::pair<const Node*, int>, const AttrMap*> known_;
  absl::flat_hash_map<const Node*, Node*> copies_;  // of what moves into the branch
  absl::flat_hash_set<const Node*> moved_;          // these copies
  // Names that nodes had in the function or in the caller's graph, and have now.
  absl::flat_hash_map<std::string, std::string> names_, sunk_names_;
};

}  // namespace

int BranchOperands::Find(Endpoint e) const {
  const auto it = positions.find({e.node, e.port});
  return it == positions.end() ? -1 : it->second;
}

int BranchOperands::FindWait(const Node* node) const {
  return Find({const_cast<Node*>(node), GivesToWaitFor(*node) ? 0 : -1});
}

StatusOr<BranchOperands> OperandsOf(Graph& graph, const BranchPlan& plan, BranchPlanner& planner) {
  BranchOperands out;
  std::vector<Node*> waits;
  absl::flat_hash_set<const Node*> waited, moved;
  const auto add = [&](Endpoint e) {
    const int next = static_cast<int>(out.values.size());
    if (out.positions.try_emplace({e.node, e.port}, next).second) out.values.push_back(e);
  };
  for (size_t b = 0; b < plan.functions.size(); ++b) {
    const absl::flat_hash_set<const Node*> sunk(plan.sunk[b].begin(), plan.sunk[b].end());
    moved.insert(sunk.begin(), sunk.end());
    for (auto it = plan.sunk[b].rbegin(); it != plan.sunk[b].rend(); ++it) {
      for (const Endpoint& e : (*it)->inputs()) {
        if (!sunk.contains(e.node)) add(e);
      }
      for (Node* c : (*it)->control_inputs()) {
        if (sunk.contains(c)) continue;
        if (GivesToWaitFor(*c)) {
          add({c, 0});
        } else if (waited.insert(c).second) {
          waits.push_back(c);
        }
      }
    }
    for (const int i : planner.UsesOf(*plan.functions[b]).forward) {
      const Endpoint e = plan.node->input(i + 1);
      if (!sunk.contains(e.node)) add(e);
    }
  }
  for (size_t i = 0; i < plan.dropped.size(); ++i) {
    const Endpoint e = plan.node->input(static_cast<int>(i) + 1);
    if (!plan.dropped[i] && !moved.contains(e.node)) add(e);
  }
  out.first_wait = static_cast<int>(out.values.size());
  for (size_t i = 0; i < waits.size(); ++i) {
    Node* c = waits[i];
    const std::string name = absl::StrCat(plan.node->name(), "_mlir_const_capture_", i);
    Node* constant = graph.AddConst(graph.FreeName(name), Tensor::Scalar<int32_t>(0));
    constant->device = plan.node->device;
    graph.AddControlInput(constant, c);
    out.positions[{c, -1}] = static_cast<int>(out.values.size());
    out.values.push_back({constant, 0});
  }
  return out;
}

StatusOr<std::unique_ptr<Function>> SpecializeBranch(const BranchPlan& plan, size_t branch,
                                                     const BranchOperands& operands,
                                                     absl::string_view name) {
  return BranchSpecializer(plan, branch, operands).Make(name);
}

}  // namespace smelt
