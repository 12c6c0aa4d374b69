#include "absl/container/flat_hash_set.h"
#include "smelt/optimize/loop/parts.h"

namespace smelt {
namespace {

constexpr OpSet kStacks = {"Stack", "StackV2"};
constexpr OpSet kPushes = {"StackPush", "StackPushV2"};
constexpr OpSet kPops = {"StackPop", "StackPopV2"};
constexpr OpSet kCloses = {"StackClose", "StackCloseV2"};
constexpr OpSet kPassesHandle = {"Enter",    "RefEnter", "Switch",     "RefSwitch",
                                 "_SwitchN", "Identity", "RefIdentity"};

// The pushes onto the stack, where nothing pops from it. Sets `why` where something may.
std::vector<Node*> UselessPushes(const Node* stack, std::string* why) {
  std::vector<Node*> pushes;
  absl::flat_hash_set<const Node*> seen = {stack};
  std::vector<const Node*> todo = {stack};
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (IsRoot(*n)) {
      *why = absl::StrCat("'", n->name(), "' must stay");
      return {};
    }
    for (const Use& use : n->OrderedUses()) {
      if (use.is_control() || !seen.insert(use.node).second) continue;
      if (use.node->Is(kPushes) && use.input == 0) {
        pushes.push_back(use.node);
      } else if (use.node->Is(kPassesHandle)) {
        todo.push_back(use.node);
      } else if (!use.node->Is(kCloses) &&
                 !(use.node->Is(kPops) && use.node->uses().empty() && !IsRoot(*use.node))) {
        *why = absl::StrCat("'", use.node->name(), "' (", use.node->op(), ") reads the stack");
        return {};
      }
    }
  }
  return pushes;
}

}  // namespace

Status RemoveStackPushes(Graph& graph, const PassContext& context) {
  for (Node* stack : graph.Nodes()) {
    if (!stack->Is(kStacks)) continue;
    std::string why;
    const std::vector<Node*> pushes = UselessPushes(stack, &why);
    if (!why.empty()) context.Declined("RemoveStackPush", *stack, why);
    for (Node* push : pushes) {
      const Endpoint handle = push->input(0), value = push->input(1);
      std::vector<Node*> controls = push->control_inputs();
      ASSIGN_OR_RETURN(controls.emplace_back(), WaitableNode(graph, handle));
      AttrMap attrs;
      for (const auto& [name, attr] : push->attrs()) {
        if (name != "swap_memory") attrs.Set(name, attr);
      }
      push->AttrsToChange() = std::move(attrs);
      graph.SetOp(push, "Identity");
      graph.SetInputs(push, {value});
      graph.SetControlInputs(push, std::move(controls));
      RETURN_IF_ERROR(graph.ResolveTypes(push));
      context.Fired("RemoveStackPush", *push, push->name());
    }
  }
  return OkStatus();
}

}  // namespace smelt
