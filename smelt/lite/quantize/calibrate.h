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
// they ran, of nodes that no sample reached none, nor of what LSTMs in bodies have in between, nor
// of what held NaN or an infinity; the least number may be minus infinity. States are kept from
// one sample to the next, as TensorFlow's calibration does. A sample has a tensor for each argument
// of the main graph, in order. INVALID_ARGUMENT without samples, where one does not fit, or is not
// finite, with its name; errors of lowering and of running.
StatusOr<LiteRanges> Calibrate(const LiteGraphs& graphs, std::span<const LiteSample> samples);

// Takes out those of nodes of the graph whose results go down to minus infinity, or have an end so
// far that no scale does.
void DropEndless(const Graph& graph, LiteRanges& ranges);

// States them (SetSeenRange) where they are of, and those of an LSTM's states at these.
void StateRanges(Graph& graph, const LiteRanges& ranges);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_CALIBRATE_H_
