// Branches, loops and what only orders.
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

Status CheckNoHandles(const Node& n) {
  for (const auto* types : {&n.input_types, &n.output_types}) {
    for (const Dtype type : *types) {
      if (type == Dtype::kVariant) return Unimplemented("a list that is no tensor goes through it");
      if (type == Dtype::kResource) return Unimplemented("it chooses between resources");
    }
  }
  return OkStatus();
}

LiteEndpoints While(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckNoHandles(n));
  const FuncAttr *cond = n.Func("cond"), *body = n.Func("body");
  if (cond == nullptr || body == nullptr) return Unimplemented("it does not name its functions");
  return Many(l.AddMany("tfl.while", Inputs(n), Options({{"cond", *cond}, {"body", *body}}),
                        AllOutputs(n, l)));
}

LiteEndpoints If(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckNoHandles(n));
  if (n.input_types[0] != Dtype::kBool) return Unimplemented("what it tests is no bool");
  const FuncAttr *then = n.Func("then_branch"), *otherwise = n.Func("else_branch");
  if (then == nullptr || otherwise == nullptr) {
    return Unimplemented("it does not name its functions");
  }
  return Many(l.AddMany("tfl.if", Inputs(n),
                        Options({{"then_branch", *then}, {"else_branch", *otherwise}}),
                        AllOutputs(n, l)));
}

LiteEndpoints Nothing(Node&, Legalizer&) { return std::vector<Endpoint>(); }

constexpr ExportRow kControlRows[] = {
    {"While", While},    {"StatelessWhile", While}, {"If", If},
    {"StatelessIf", If}, {"NoOp", Nothing},         {"Assert", Nothing},
};

}  // namespace

std::span<const ExportRow> ControlExport() { return kControlRows; }

}  // namespace smelt
