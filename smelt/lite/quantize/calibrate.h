// What numbers graphs of operators compute on samples.
#ifndef SMELT_LITE_QUANTIZE_CALIBRATE_H_
#define SMELT_LITE_QUANTIZE_CALIBRATE_H_

#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "smelt/lite/quantize/graphs.h"
#include "smelt/lite/quantize/sample_run.h"

namespace smelt {

struct LiteRange {
  float min = 0, max = 0;
};
// By node and output; and of an LSTM what it has in between: ports kLstmRanges + i, of its four
// gates before they are normalized, of what is before its projection (4), of its cell (5).
inline constexpr int kLstmRanges = 1000, kLstmHidden = 4, kLstmCell = 5;
using LiteRanges = absl::flat_hash_map<std::pair<const Node*, int>, LiteRange>;

// The ranges of all float outputs of operators and arguments: of bodies those of every time that
// they ran, of nodes that no sample reached none, nor of what LSTMs in bodies have in between.
// States are kept from one sample to the next, as TensorFlow's calibration does. A sample has a
// tensor for each argument of the main graph, in order. INVALID_ARGUMENT without samples, where one
// does not fit, or where a tensor is not finite, with its name; errors of lowering and of running.
// The least number of a tensor of the main graph may be minus infinity.
StatusOr<LiteRanges> Calibrate(const LiteGraphs& graphs, std::span<const LiteSample> samples);

// INVALID_ARGUMENT names one of the nodes whose results go down to minus infinity.
Status CheckRanges(const Graph& graph, const LiteRanges& ranges);

// States them (SetSeenRange) where they are of, and those of an LSTM's states at these.
void StateRanges(Graph& graph, const LiteRanges& ranges);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_CALIBRATE_H_
