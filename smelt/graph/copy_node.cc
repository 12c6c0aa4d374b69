#include "smelt/graph/copy_node.h"

namespace smelt {

StatusOr<Node*> AddCopy(Graph& graph, const Node& of, absl::string_view name) {
  ASSIGN_OR_RETURN(Node * copy, graph.AddNode(graph.FreeName(name), of.op()));
  copy->AttrsToChange() = of.attrs();
  copy->device = of.device;
  copy->SetInputTypes(of.input_types);
  copy->SetOutputTypes(of.output_types);
  copy->opaque_outputs = of.opaque_outputs;
  copy->extra = of.extra;
  return copy;
}

}  // namespace smelt
