#include "smelt/lite/quantize/conversion.h"

#include "smelt/lite/common/attributes.h"

namespace smelt {

StatusOr<Endpoint> AddConversion(Graph& graph, const std::string& name, OpName op, Endpoint from,
                                 Dtype type, AttrMap how) {
  how.Set("Tin", DtypeVector{from.node->output_types[static_cast<size_t>(from.port)]});
  how.Set("Tout", DtypeVector{type});
  how.Set(kOutputShapes, std::vector<PartialShape>{StatedShape(from)});
  ASSIGN_OR_RETURN(Node * n, graph.Add(name, op.text(), {from}, std::move(how)));
  return Endpoint{n, 0};
}

}  // namespace smelt
