// What numbers a graph of operators computes on samples.
#ifndef SMELT_LITE_QUANTIZE_CALIBRATE_H_
#define SMELT_LITE_QUANTIZE_CALIBRATE_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/graph.h"

namespace smelt {

struct LiteRange {
  float min = 0, max = 0;
};
// By node and output.
using LiteRanges = absl::flat_hash_map<std::pair<const Node*, int>, LiteRange>;

// The ranges of all float outputs of operators and arguments. A sample has a tensor for each
// argument, in order. INVALID_ARGUMENT without samples, where one does not fit, or where a tensor
// is not finite, with its name; errors of lowering and of running.
StatusOr<LiteRanges> Calibrate(const Graph& graph, std::span<const std::vector<Tensor>> samples);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_CALIBRATE_H_
