#include "smelt/lite/prepare/ref_variables.h"

#include <algorithm>

#include "smelt/kernels/resource_manager.h"

namespace smelt {
namespace {

// What writes through a handle in place of what writes by reference.
OpName WriterFor(const Node& n) {
  if (n.Is("Assign")) return "AssignVariableOp";
  if (n.Is("AssignAdd")) return "AssignAddVariableOp";
  if (n.Is("AssignSub")) return "AssignSubVariableOp";
  return {};
}

bool IsWrite(const Use& use) {
  return !use.is_control() && IsRef(use.node->input_types[static_cast<size_t>(use.input)]);
}

StatusOr<Endpoint> Read(Graph& graph, Node* handle, const Node& for_node,
                        const std::vector<Node*>& after) {
  AttrMap attrs;
  attrs.Set("dtype", handle->Type("dtype"));
  ASSIGN_OR_RETURN(Node * read, graph.Add(absl::StrCat(for_node.name(), "/read"), "ReadVariableOp",
                                          {Endpoint{handle, 0}}, std::move(attrs)));
  graph.SetControlInputs(read, after);
  return Endpoint{read, 0};
}

// What the write gives is the variable as it is then, by reference again.
Status ReplaceWrite(Graph& graph, Node* write, Node* handle) {
  AttrMap attrs;
  attrs.Set("dtype", handle->Type("dtype"));
  ASSIGN_OR_RETURN(Node * made,
                   graph.Add(write->name(), WriterFor(*write).text(),
                             {Endpoint{handle, 0}, write->input(1)}, std::move(attrs)));
  graph.SetControlInputs(made, write->control_inputs());
  for (const Use& use : write->OrderedUses()) {
    if (use.is_control()) continue;
    ASSIGN_OR_RETURN(const Endpoint value, Read(graph, handle, *use.node, {made}));
    graph.SetInput(use.node, use.input, value);
  }
  graph.ReplaceControlUses(write, made);
  graph.Remove(write);
  return OkStatus();
}

Status Name(Graph& graph, Node* variable) {
  const ResourceName at(*variable);
  AttrMap attrs;
  attrs.Set("container", variable->String("container"));
  attrs.Set("shared_name", at.name);
  attrs.Set("dtype", variable->Type("dtype"));
  attrs.Set("shape", variable->Get<PartialShape>("shape", {}));
  ASSIGN_OR_RETURN(Node * handle, graph.Add(variable->name(), "VarHandleOp", {}, std::move(attrs)));
  for (const Use& use : variable->OrderedUses()) {
    if (use.is_control()) continue;
    if (IsWrite(use)) {
      RETURN_IF_ERROR(ReplaceWrite(graph, use.node, handle));
      continue;
    }
    ASSIGN_OR_RETURN(const Endpoint value,
                     Read(graph, handle, *use.node, use.node->control_inputs()));
    graph.SetInput(use.node, use.input, value);
  }
  graph.ReplaceControlUses(variable, handle);
  graph.Remove(variable);
  return OkStatus();
}

}  // namespace

bool IsRefVariable(const Node& n) { return n.Is("VariableV2") || n.Is("Variable"); }

Status NameRefVariables(Graph& graph, absl::FunctionRef<bool(const Node&)> wanted) {
  for (Node* n : graph.Nodes()) {
    if (!IsRefVariable(*n) || !wanted(*n)) continue;
    const auto& uses = n->uses();
    // A write whose own result is written again stays by reference.
    const bool known = std::ranges::all_of(uses, [](const Use& use) {
      return !IsWrite(use) || (!WriterFor(*use.node).unknown() && use.input == 0 &&
                               std::ranges::none_of(use.node->uses(), IsWrite));
    });
    if (known) RETURN_IF_ERROR(Name(graph, n));
  }
  return OkStatus();
}

}  // namespace smelt
