// TensorFlow's debug_stripper: what only checks or prints goes, and its order stays.
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr OpSet kBecomeNoOp = {"Assert", "PrintV2"};
constexpr OpSet kBecomeIdentity = {"CheckNumerics", "Print"};

// Data inputs from `first` on are only waited for from now on.
void WaitForInputs(Graph& graph, Node* node, int first) {
  std::vector<Node*> waits = node->control_inputs();
  for (int i = first; i < node->num_inputs(); ++i) waits.push_back(node->input(i).node);
  graph.SetInputs(node, std::span(node->inputs().data(), static_cast<size_t>(first)));
  graph.SetOrderedControlInputs(node, std::move(waits));
}

}  // namespace

Status StripDebugOps(Graph& graph, const PassContext& context) {
  for (Node* n : graph.Nodes()) {
    if (n->Is(kBecomeNoOp)) {
      WaitForInputs(graph, n, 0);
      SetAttrsButMarks(n, {});
      graph.SetOp(n, "NoOp");
    } else if (n->Is(kBecomeIdentity)) {
      AttrMap attrs;
      attrs.Set("T", n->Type("T"));
      WaitForInputs(graph, n, 1);
      SetAttrsButMarks(n, std::move(attrs));
      graph.SetOp(n, "Identity");
    } else {
      continue;
    }
    RETURN_IF_ERROR(graph.ResolveTypes(n));
    context.Fired(n->op(), *n);
  }
  return OkStatus();
}

}  // namespace smelt
