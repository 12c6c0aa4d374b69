// What the files of this folder share. A row that has no operator for a node says why, as an error
// of the code UNIMPLEMENTED.
#ifndef SMELT_LITE_ROWS_ROWS_H_
#define SMELT_LITE_ROWS_ROWS_H_

#include <array>
#include <vector>

#include "smelt/lite/legalizer.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt {

std::span<const ExportRow> ElementwiseExport();
std::span<const ExportRow> MovementExport();
std::span<const ExportRow> ReduceExport();
std::span<const ExportRow> NnExport();
std::span<const ExportRow> ProductExport();

// One endpoint for a node of one output.
inline LiteEndpoints One(StatusOr<Endpoint> e) {
  RETURN_IF_ERROR(e.status());
  return std::vector<Endpoint>{*e};
}
inline std::vector<Endpoint> Inputs(const Node& n) {
  return {n.inputs().begin(), n.inputs().end()};
}

// The type of input 0 is one that the operator's kernels take.
Status CheckType(const Node& n, DtypeSet types);
// Operators broadcast up to so many dimensions.
inline constexpr int kMaxBroadcastRank = 6;
Status CheckBroadcast(const Node& n, const Legalizer& l);
// A tensor of int32, which a constant of int64 becomes when it is exported, and which others are
// cast to.
StatusOr<Endpoint> AsInt32(Endpoint e, Legalizer& l);

}  // namespace smelt

#endif  // SMELT_LITE_ROWS_ROWS_H_
