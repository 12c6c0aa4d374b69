#include "smelt/lite/shifted_states.h"

#include "absl/strings/str_cat.h"

namespace smelt {
namespace {

// The operator that gives a value that it is given twice.
absl::string_view CopierOf(Dtype type) {
  constexpr DtypeSet kNumbers = Types(Dtype::kFloat, Dtype::kInt8, Dtype::kUint8, Dtype::kInt16,
                                      Dtype::kInt32, Dtype::kInt64);
  if (Has(kNumbers, type)) return "tfl.maximum";
  if (Has(Types(Dtype::kUint16, Dtype::kUint32), type)) return "tfl.stablehlo_and";
  return type == Dtype::kBool ? "tfl.logical_or" : "";
}

Status CopyShifted(Graph& body) {
  for (Node* n : body.Nodes()) {
    if (!n->Is("_Retval")) continue;
    const Endpoint from = n->input(0);
    if (!from.node->Is("_Arg") || from.node->Int("index") >= n->Int("index")) continue;
    const Dtype type = from.node->output_types[0];
    const absl::string_view op = CopierOf(type);
    if (op.empty()) {
      return Unimplemented("result ", n->Int("index"), " of the body of a loop is its argument ",
                           from.node->Int("index"), ", of ", DtypeName(type),
                           ", which LiteRT overwrites before");
    }
    AttrMap attrs;
    for (const auto& [name, value] : from.node->attrs()) {
      if (name != "T" && name != "index") attrs.Set(name, value);
    }
    attrs.Set("Tin", DtypeVector{type, type});
    attrs.Set("Tout", DtypeVector{type});
    ASSIGN_OR_RETURN(Node * copy, body.Add(absl::StrCat(n->name(), "/copy"), op, {from, from},
                                           std::move(attrs)));
    body.SetInput(n, 0, {copy, 0});
  }
  return OkStatus();
}

}  // namespace

Status CopyShiftedStates(const LiteGraphs& graphs) {
  return VisitLoops(graphs, [](Graph&, Node*, Graph&, Graph& body) { return CopyShifted(body); });
}

}  // namespace smelt
