#include "smelt/optimize/arithmetic/common.h"

namespace smelt::arithmetic {

const OpSet kPassesOn = {"Identity", "Snapshot", "StopGradient", "PreventGradient",
                         "DebugGradientIdentity"};

Node* Producer(Endpoint e, const OpSet& ops) {
  return e.node->Is(ops) && !IsFed(*e.node) ? e.node : nullptr;
}

bool TrustsShape(Endpoint e, const Rewriter& r) {
  return !IsFed(*e.node) || r.context().config.arithmetic_optimization == Toggle::kAggressive;
}

Node* TailOfChain(Node& node, const OpSet& ops) {
  Node* tail = &node;
  while (true) {
    Node* next = tail->input(0).node;
    const bool passes = next->Is(ops) && next->num_inputs() > 0 && next != &node &&
                        NumDataUses(*next) == 1 && !IsRoot(*next) &&
                        !GivesReference(tail->input(0));
    if (!passes) return tail;
    tail = next;
  }
}

StatusOr<bool> MayDrop(Node& node, Endpoint input, Endpoint kept, Rewriter& r) {
  if (!input.node->Is("Const")) return !r.HasControlFlow();
  for (Node* before : input.node->control_inputs()) {
    if (!RunsAfter(*kept.node, *before)) RETURN_IF_ERROR(r.Wait(&node, {before, 0}));
  }
  return true;
}

StatusOr<Node*> AddConstBeside(absl::string_view name, const Tensor& value, const Node& like,
                               Endpoint beside, Rewriter& r) {
  Node* constant = r.AddConst(name, value, like);
  RETURN_IF_ERROR(r.Wait(constant, beside));
  return constant;
}

}  // namespace smelt::arithmetic
