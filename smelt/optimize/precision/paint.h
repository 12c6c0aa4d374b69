// Decides which types of a graph become narrow: TensorFlow's auto_mixed_precision.
#ifndef SMELT_OPTIMIZE_PRECISION_PAINT_H_
#define SMELT_OPTIMIZE_PRECISION_PAINT_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/optimize/precision/lists.h"
#include "smelt/optimize/precision/type_graph.h"

namespace smelt {

struct PaintOptions {
  PrecisionMode mode = PrecisionMode::kHalfOnGpu;
  PrecisionLists lists;
  bool force_all = false;  // every op that may be narrow, whatever the lists say
  Dtype narrow = Dtype::kHalf;
};

// By place: does it become narrow? `may_change`: the node may be rewritten; `on_gpu`: it is for a
// GPU. FAILED_PRECONDITION when a NextIteration is read by what is no Merge. Time is linear in the
// graph.
StatusOr<std::vector<bool>> PaintTypes(const TypeGraph& types, const Graph& graph,
                                       const PaintOptions& options,
                                       absl::FunctionRef<bool(const Node&)> may_change,
                                       absl::FunctionRef<bool(const Node&)> on_gpu);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_PRECISION_PAINT_H_
