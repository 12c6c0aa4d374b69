// Rows of a table by their numbers.
#include "smelt/lite/composites/composite.h"

namespace smelt {
namespace {

LiteEndpoints Embedding(const CompositeCall& call, Legalizer& l) {
  RETURN_IF_ERROR(CheckCounts(call, 2, 1));
  const Endpoint table = call.node.input(0), ids = call.node.input(1);
  if (l.type(ids) != Dtype::kInt32 || l.rank(ids) != 1) {
    return Unimplemented("its operator takes a vector of int32 as ids, not ",
                         DtypeName(BaseType(l.type(ids))), l.shape(ids).ToString());
  }
  if (l.rank(table) < 2) return Unimplemented("its table is no matrix");
  // The operator knows no row but by number.
  ASSIGN_OR_RETURN(const Endpoint e,
                   l.Add("tfl.embedding_lookup", {ids, table}, {}, l.OutputOf(call.node)));
  return std::vector<Endpoint>{e};
}

constexpr Composite kLookupRows[] = {
    {"embedding_matmul", ImplementsKind::kString, false, Embedding, "rows of a matrix"},
    {"embedding_lookup", ImplementsKind::kString, false, Embedding, "rows of a matrix"},
};

}  // namespace

std::span<const Composite> LookupComposites() { return kLookupRows; }

}  // namespace smelt
