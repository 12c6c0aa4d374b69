// Variables that somebody writes. What they hold at first is written by init_graph.h.
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

constexpr DtypeSet kKept = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kBool,
                                 Dtype::kUint8, Dtype::kInt8, Dtype::kInt16);

LiteEndpoints Handle(Node& n, Legalizer& l) {
  if (!Has(kKept, n.Type("dtype"))) {
    return Unimplemented("variables of ", DtypeName(n.Type("dtype")), " are not kept");
  }
  const ResourceName at(n);
  return One(l.Add("tfl.var_handle", {},
                   Options({{"container", at.container}, {"shared_name", at.name}}),
                   {Dtype::kResource, PartialShape::Of({1})}));
}

LiteEndpoints Read(Node& n, Legalizer& l) {
  return One(l.Add("tfl.read_variable", Inputs(n), {}, l.OutputOf(n)));
}

LiteEndpoints Assign(Node& n, Legalizer& l) {
  ASSIGN_OR_RETURN(Node * made, l.AddMany("tfl.assign_variable", Inputs(n), {}, {}));
  return LiteEndpoints({Endpoint{made, 0}});
}

// Reads, computes by the row's operator, and writes.
LiteEndpoints Update(Node& n, Legalizer& l) {
  const LiteOutput value = {l.type(n.input(1)), l.shape(n.input(1))};
  if (!Has(Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64), value.type)) {
    return Unimplemented("its operator does not take ", DtypeName(value.type));
  }
  ASSIGN_OR_RETURN(const Endpoint old, l.Add("tfl.read_variable", {n.input(0)}, {}, value));
  ASSIGN_OR_RETURN(const Endpoint sum, l.Add(l.row().lite, {old, n.input(1)}, {}, value));
  const std::vector<Endpoint> inputs = {n.input(0), sum};
  ASSIGN_OR_RETURN(Node * made, l.AddMany("tfl.assign_variable", inputs, {}, {}));
  return LiteEndpoints({Endpoint{made, 0}});
}

constexpr ExportRow kStateRows[] = {
    {"VarHandleOp", Handle},
    {"ReadVariableOp", Read},
    {"AssignVariableOp", Assign},
    {"AssignAddVariableOp", Update, "tfl.add"},
    {"AssignSubVariableOp", Update, "tfl.sub"},
};

}  // namespace

std::span<const ExportRow> StateExport() { return kStateRows; }

}  // namespace smelt
