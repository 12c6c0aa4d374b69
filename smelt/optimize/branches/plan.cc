#include "smelt/optimize/branches/plan.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/functions/common.h"
#include "smelt/optimize/functions/lower_control_flow.h"
#include "smelt/optimize/inline_policy.h"
#include "smelt/optimize/instantiate.h"

namespace smelt {
namespace {

constexpr int kInSeveral = -2, kInNone = -1;

bool TakesListsOrTypes(const std::vector<ArgDef>& args) {
  return std::ranges::any_of(args, [](const ArgDef& a) {
    return !a.type_attr.empty() || !a.type_list_attr.empty() || !a.number_attr.empty();
  });
}

void AddCallees(const Graph& body, const Node& node, std::vector<const Function*>& callees) {
  if (!IsBranch(node)) return;
  for (const FuncAttr* named : BranchesOf(node)) {
    const Function* f = body.library()->Find(named->name);
    if (f != nullptr && f->body != nullptr) callees.push_back(f);
  }
}

ArgumentUses LookForUses(const Function& f) {
  ArgumentUses uses;
  absl::flat_hash_map<const Node*, int> arguments;
  for (size_t i = 0; i < f.args.size(); ++i) arguments[f.args[i]] = static_cast<int>(i);
  uses.used.resize(f.args.size(), false);
  const auto argument = [&](const Node* n) {
    const auto it = arguments.find(n);
    return it == arguments.end() ? -1 : it->second;
  };
  // What each node and, last, the function's end reads.
  std::vector<std::vector<int>> groups;
  const auto add = [&](const Node* n) {
    if (const int i = argument(n); i >= 0) groups.back().push_back(i);
  };
  for (const Node* n : f.body->Nodes()) {
    groups.emplace_back();
    for (const Endpoint& e : n->inputs()) add(e.node);
    for (const Node* c : n->control_inputs()) add(c);
    if (groups.back().empty()) groups.pop_back();
  }
  groups.emplace_back();
  for (const Endpoint& e : f.FlatResults()) add(e.node);
  for (const auto& [name, node] : f.control_results) add(node);
  for (const auto& group : groups) {
    for (const int i : group) {
      if (!uses.used[static_cast<size_t>(i)]) uses.forward.push_back(i);
      uses.used[static_cast<size_t>(i)] = true;
    }
  }
  std::vector<bool> seen(f.args.size(), false);
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    std::vector<int> first;
    for (const int i : *group) {
      if (!seen[static_cast<size_t>(i)]) first.push_back(i);
      seen[static_cast<size_t>(i)] = true;
    }
    if (!first.empty()) uses.backward.push_back(std::move(first));
  }
  return uses;
}

}  // namespace

bool BranchPlan::ChangesAnything() const {
  return std::ranges::find(dropped, true) != dropped.end() ||
         std::ranges::any_of(sunk, [](const auto& nodes) { return !nodes.empty(); });
}

BranchPlanner::BranchPlanner(Graph& graph, const PassContext& context)
    : graph_(graph), context_(context), circles_(AddCallees) {}

const ArgumentUses& BranchPlanner::UsesOf(const Function& f) {
  const auto known = uses_.find(&f);
  return known == uses_.end() ? uses_.emplace(&f, LookForUses(f)).first->second : known->second;
}

std::string BranchPlanner::WhyNot(const Node& node, const Function* f) {
  if (f == nullptr || f->body == nullptr) return "a function is missing";
  if (f->body.get() == &graph_) return "it is the function's own body";
  if (graph_.library()->gradients.contains(f->name())) return "the function has a gradient";
  if (IsForXla(f->attrs)) return "XLA compiles the function";
  if (!f->signature.attrs.empty() || TakesListsOrTypes(f->signature.inputs) ||
      TakesListsOrTypes(f->signature.outputs)) {
    return "the function takes types from its caller, or lists";
  }
  // Fields of FunctionDef that number its arguments.
  if (!f->extra.empty()) return "others number the function's arguments";
  if (f->args.size() + 1 != node.inputs().size()) return "the function takes another number";
  for (size_t i = 0; i < f->args.size(); ++i) {
    if (TypeOf(node.input(static_cast<int>(i) + 1)) != f->signature.inputs[i].type ||
        f->args[i]->num_outputs() != 1) {
      return "the function takes other types";
    }
  }
  if (HasPlaceholders(*f->body)) return "the function takes attributes from its caller";
  if (circles_.StaysCall(*f)) return "the function calls itself";
  return "";
}

bool BranchPlanner::MayDie(Endpoint e) {
  if (!dead_values_) dead_values_.emplace(graph_);
  return dead_values_->MayDie(e);
}

std::optional<BranchPlan> BranchPlanner::Plan(Node* node) {
  if (!IsBranch(*node) || IsFed(*node) || IsForXla(node->attrs()) || node->inputs().empty()) {
    return std::nullopt;
  }
  BranchPlan plan;
  plan.node = node;
  for (const FuncAttr* named : BranchesOf(*node)) {
    plan.functions.push_back(graph_.library()->Find(named->name));
    if (const std::string why = WhyNot(*node, plan.functions.back()); !why.empty()) {
      context_.Declined("Sink", *node, why);
      return std::nullopt;
    }
  }
  if (plan.functions.empty() || (IsIf(*node) && plan.functions.size() != 2)) return std::nullopt;
  const size_t operands = node->inputs().size() - 1;
  plan.dropped.resize(operands, false);
  plan.sunk.resize(plan.functions.size());
  std::vector<int> only_in(operands, kInNone);
  for (size_t b = 0; b < plan.functions.size(); ++b) {
    for (const int i : UsesOf(*plan.functions[b]).forward) {
      int& in = only_in[static_cast<size_t>(i)];
      in = in == kInNone ? static_cast<int>(b) : kInSeveral;
    }
  }
  for (size_t i = 0; i < operands; ++i) {
    // Whether the node runs at all is told by what may be dead.
    plan.dropped[i] = only_in[i] == kInNone && !MayDie(node->input(static_cast<int>(i) + 1));
  }
  // As in TensorFlow not from a graph that requests see, but from the bodies of functions.
  const bool sinks =
      context_.is_body && context_.config.experimental_conditional_code_motion != Toggle::kOff;
  for (size_t b = 0; sinks && b < plan.functions.size(); ++b) Sink(plan, b, only_in);
  return plan;
}

bool BranchPlanner::MaySink(const Node& x) const {
  if (IsRoot(x) || IsForXla(x.attrs()) || x.Is(kControlFlow) || x.Is(kBridgeOps)) return false;
  // A branch that stands in a branch would be copied for each of those around it.
  if (x.Is(kFunctionalControlFlow)) return false;
  if (HasEffect(x) || !IsFreeOfSideEffect(x)) return false;
  return std::ranges::none_of(x.output_types, IsRef) &&
         std::ranges::none_of(x.inputs(), [](const Endpoint& e) {
           const Dtype type = e.node->output_types[static_cast<size_t>(e.port)];
           return IsRef(type) || type == Dtype::kInvalid;
         });
}

// Nodes that only branch `branch` needs, or what moved into it before. Each use is looked at once.
void BranchPlanner::Sink(BranchPlan& plan, size_t branch, const std::vector<int>& only_in) {
  // How often a node is used by the branch or by an operand that is dropped.
  absl::flat_hash_map<const Node*, size_t> inside;
  for (size_t i = 0; i < only_in.size(); ++i) {
    if (plan.dropped[i] || only_in[i] == static_cast<int>(branch)) {
      ++inside[plan.node->input(static_cast<int>(i) + 1).node];
    }
  }
  absl::flat_hash_set<const Node*> sunk;
  std::vector<Node*> todo;
  const auto try_to_sink = [&](Node* x) {
    if (sunk.contains(x) || inside[x] != x->uses().size() || !MaySink(*x)) return;
    sunk.insert(x);
    plan.sunk[branch].push_back(x);
    todo.push_back(x);
    for (const Endpoint& e : x->inputs()) ++inside[e.node];
    for (const Node* c : x->control_inputs()) ++inside[c];
  };
  // In TensorFlow's order: the function from its end.
  for (const auto& group : UsesOf(*plan.functions[branch]).backward) {
    for (const int i : group) {
      if (only_in[static_cast<size_t>(i)] == static_cast<int>(branch)) {
        try_to_sink(plan.node->input(i + 1).node);
      }
    }
    while (!todo.empty()) {
      const Node* x = todo.back();
      todo.pop_back();
      for (const Endpoint& e : x->inputs()) try_to_sink(e.node);
      for (Node* c : x->control_inputs()) try_to_sink(c);
    }
  }
}

}  // namespace smelt
