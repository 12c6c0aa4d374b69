// If and Case take no operand that no branch needs, and what one branch alone needs is computed
// there: TensorFlow's control flow sink, which makes regions of functions for it and functions of
// regions again.
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/branches/plan.h"
#include "smelt/optimize/branches/specialize_branch.h"
#include "smelt/optimize/functions/common.h"
#include "smelt/optimize/functions/lower_control_flow.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

class BranchSinker {
 public:
  BranchSinker(Graph& graph, const PassContext& context)
      : graph_(graph),
        context_(context),
        planner_(graph, context),
        left_(context.inlinable_nodes) {}

  Status Run() {
    // Nodes go while these are looked at, but none of these: no branch moves into another.
    std::vector<Node*> branches = graph_.Nodes();
    std::erase_if(branches, [](const Node* n) { return !IsBranch(*n); });
    for (Node* n : branches) {
      const std::optional<BranchPlan> plan = planner_.Plan(n);
      if (!plan || !plan->ChangesAnything()) continue;
      RETURN_IF_ERROR(Apply(*plan));
    }
    return OkStatus();
  }

 private:
  Status Apply(const BranchPlan& plan) {
    Node* node = plan.node;
    bool sinks = false;
    for (const auto& nodes : plan.sunk) sinks = sinks || !nodes.empty();
    const std::string key = sinks ? "" : KeyOf(plan);
    const auto made = made_.find(key);
    const bool shares = !sinks && made != made_.end();
    if (!shares && !Afford(plan)) {
      context_.Declined("Sink", *node, "copies of its functions would be too large");
      return OkStatus();
    }
    FindLostOrders(plan);
    ASSIGN_OR_RETURN(const BranchOperands operands, OperandsOf(graph_, plan, planner_));
    std::vector<std::string> names;
    if (shares) names = made->second;
    for (size_t b = 0; !shares && b < plan.functions.size(); ++b) {
      const std::string name = graph_.library()->FreeName(absl::StrCat(
          plan.functions[b]->name(), "_tfg_region_specialized_", Plain(node->name()), "_", b));
      ASSIGN_OR_RETURN(auto copy, SpecializeBranch(plan, b, operands, name));
      RETURN_IF_ERROR(graph_.library()->Add(std::move(copy)));
      names.push_back(name);
    }
    if (!sinks) made_[key] = names;
    context_.Fired("Sink", *node, names.front());
    RETURN_IF_ERROR(Call(plan, operands, names));
    std::vector<Node*> gone;
    for (const auto& nodes : plan.sunk) gone.insert(gone.end(), nodes.begin(), nodes.end());
    graph_.Remove(gone);
    return OkStatus();
  }

  // Where nothing moves, nodes that drop the same of the same functions share the copies.
  static std::string KeyOf(const BranchPlan& plan) {
    std::map<std::pair<const Node*, int>, int> same;  // operands that are given twice are one
    std::string key;
    for (size_t i = 0; i < plan.dropped.size(); ++i) {
      const Endpoint e = plan.node->input(static_cast<int>(i) + 1);
      const int first = same.try_emplace({e.node, e.port}, static_cast<int>(i)).first->second;
      absl::StrAppend(&key, plan.dropped[i] ? -1 : first, ",");
    }
    for (const Function* f : plan.functions) absl::StrAppend(&key, f->name(), ",");
    return key;
  }

  bool Afford(const BranchPlan& plan) {
    int64_t nodes = 0;
    for (const Function* f : plan.functions) nodes += f->body->num_nodes();
    if (nodes > left_) return false;
    left_ -= nodes;
    return true;
  }

  static std::string Plain(std::string name) {
    for (char& c : name) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
    }
    return name;
  }

  // TensorFlow forgets that the node ran after what gave an operand that goes. Where that is state
  // or was computed from it, and the branches may look at state, the node waits for it: also a
  // StatelessIf, whose functions may read variables.
  void FindLostOrders(const BranchPlan& plan) {
    waits_.clear();
    const bool stateful = plan.node->Is("If") || plan.node->Is("Case");
    if (!stateful && std::ranges::none_of(plan.functions, MayTouchState)) return;
    for (size_t i = 0; i < plan.dropped.size(); ++i) {
      Node* from = plan.node->input(static_cast<int>(i) + 1).node;
      if (plan.dropped[i] && DependsOnState(*from)) waits_.push_back(from);
    }
  }

  static bool MayTouchState(const Function* f) {
    return std::ranges::any_of(f->body->Nodes(), [&](const Node* n) {
      bool calls = false;
      ForEachCallee(*f->body->library(), *n, [&](absl::string_view) { calls = true; });
      return calls || n->def() == nullptr || (n->def()->stateful && !n->Is("_Arg"));
    });
  }

  bool DependsOnState(const Node& node) {
    if (!state_known_) {
      state_known_ = true;
      const auto order = graph_.TopologicalOrder();
      if (!order.ok()) return true;
      on_state_.resize(static_cast<size_t>(graph_.max_id()), false);
      const auto marked = [&](const Node* n) { return on_state_[static_cast<size_t>(n->id())]; };
      for (const Node* n : *order) {
        const bool own = n->def() == nullptr || TakesReference(*n) ||
                         (n->def()->stateful && !n->Is("_Arg") && !n->Is("VarHandleOp"));
        on_state_[static_cast<size_t>(n->id())] =
            own || std::ranges::any_of(n->control_inputs(), marked) ||
            std::ranges::any_of(n->inputs(), [&](const Endpoint& e) { return marked(e.node); });
      }
    }
    const auto id = static_cast<size_t>(node.id());
    return id >= on_state_.size() || on_state_[id];
  }

  Status Call(const BranchPlan& plan, const BranchOperands& operands,
              const std::vector<std::string>& names) {
    Node* node = plan.node;
    std::vector<FuncAttr> functions;
    for (const FuncAttr* named : BranchesOf(*node)) {
      functions.push_back(*named);
      functions.back().name = names[functions.size() - 1];
    }
    if (IsIf(*node)) {
      node->AttrsToChange().Set("then_branch", std::move(functions[0]));
      node->AttrsToChange().Set("else_branch", std::move(functions[1]));
    } else {
      node->AttrsToChange().Set("branches", std::move(functions));
    }
    std::vector<Endpoint> inputs = {node->input(0)};
    std::vector<Dtype> types;
    for (const Endpoint& e : operands.values) {
      inputs.push_back(e);
      types.push_back(TypeOf(e));
    }
    node->AttrsToChange().Set("Tin", std::move(types));
    graph_.SetInputs(node, inputs);
    for (Node* before : waits_) AddWait(graph_, node, before);
    return graph_.ResolveTypes(node);
  }

  Graph& graph_;
  const PassContext& context_;
  BranchPlanner planner_;
  int64_t left_;                                          // nodes that copies may have
  std::map<std::string, std::vector<std::string>> made_;  // by KeyOf
  std::vector<Node*> waits_;                              // by FindLostOrders
  bool state_known_ = false;
  std::vector<bool> on_state_;  // by node id
};

}  // namespace

Status SinkIntoBranches(Graph& graph, const PassContext& context) {
  return BranchSinker(graph, context).Run();
}

}  // namespace smelt
