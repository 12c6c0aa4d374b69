#include "smelt/optimize/passes.h"
#include "smelt/stablehlo/call_module.h"

namespace smelt {
namespace {

// A variable's value or a constant. Its shape is the one that was exported, and an EnsureShape
// before it would hide a weight that kernels pack once.
bool IsModuleWeight(Endpoint e) {
  while (!e.node->inputs().empty() && (e.node->Is("Identity") || e.node->Is("PreventGradient"))) {
    e = e.node->inputs()[0];
  }
  return e.node->Is("ReadVariableOp") || e.node->Is("Const");
}

// The node's inputs; those that a request may give are checked against the module's shapes.
StatusOr<std::vector<Endpoint>> CheckedInputs(Graph& graph, const Node& node) {
  std::vector<Endpoint> inputs(node.inputs().begin(), node.inputs().end());
  const std::vector<PartialShape> shapes = stablehlo::StatedShapes(node);
  for (size_t i = 0; i < inputs.size() && i < shapes.size(); ++i) {
    if (IsModuleWeight(inputs[i])) continue;
    AttrMap attrs;
    attrs.Set("T", node.input_types[i]);
    attrs.Set("shape", shapes[i]);
    ASSIGN_OR_RETURN(Node * checked, graph.Add(absl::StrCat(node.name(), "/argument_", i),
                                               "EnsureShape", {inputs[i]}, std::move(attrs)));
    inputs[i] = {checked, 0};
  }
  return inputs;
}

}  // namespace

Status CallModules(Graph& graph, const PassContext& context) {
  for (Node* n : graph.Nodes()) {
    if (!n->Is("XlaCallModule")) continue;
    ASSIGN_OR_RETURN(FuncAttr f, stablehlo::PreparedCall(*n));
    ASSIGN_OR_RETURN(std::vector<Endpoint> inputs, CheckedInputs(graph, *n));
    AttrMap attrs;
    attrs.Set("Tin", DtypeVector(n->input_types));
    attrs.Set("Tout", DtypeVector(n->output_types));
    attrs.Set("f", std::move(f));
    if (const Attr* root = n->attrs().Find("_root")) attrs.Set("_root", *root);
    ASSIGN_OR_RETURN(Node * call, graph.Add(n->name(), "StatefulPartitionedCall", std::move(inputs),
                                            std::move(attrs)));
    graph.SetControlInputs(call, n->control_inputs());
    call->device = n->device;
    for (int port = 0; port < n->num_outputs(); ++port) {
      graph.ReplaceAllUses({n, port}, {call, port});
    }
    graph.ReplaceControlUses(n, call);
    graph.Remove(n);
  }
  return OkStatus();
}

}  // namespace smelt
