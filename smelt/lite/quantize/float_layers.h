// Which layers of quantized graphs are left in float, by what that gains.
#ifndef SMELT_LITE_QUANTIZE_FLOAT_LAYERS_H_
#define SMELT_LITE_QUANTIZE_FLOAT_LAYERS_H_

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "smelt/lite/quantize/layer_errors.h"

namespace smelt {

using NodeNames = std::set<std::string, std::less<>>;

// A quantized copy of the graphs in which the nodes of these names, of all graphs, stay float;
// arguments and results are those of the float graphs.
using Quantizer = std::function<StatusOr<LiteGraphs>(const NodeNames& in_float)>;

// What is measured and chosen.
struct FloatLayerFlags {
  bool measure = false;  // `before` and `after` are wanted; max_loss wants them, too
  // Patterns of RE2 of whole names of nodes, or names, that are left float whatever they gain.
  std::vector<std::string> patterns;
  // Layers are left in float until the worst result's Noise::Relative() is at most this.
  std::optional<double> max_loss;
};

struct FloatLayers {
  NodeNames nodes;                  // with those that only move numbers between them
  NodeNames matched;                // patterns that named some
  std::vector<std::string> chosen;  // by max_loss, as they were
  LayerErrors before;               // all quantized that the patterns leave
  std::vector<Noise> after;         // of the graph's results
  size_t samples = 0;               // that `before` and `after` were measured on
  size_t trial_samples = 0;         // that LayerError::outputs_in_float was
};

// As many layers of the main graph have outputs_in_float, those whose own error is the worst, and
// as many of bodies, those whose weights' is; under max_loss all that compute have.
inline constexpr size_t kWorstLayers = 10;

// INVALID_ARGUMENT for a pattern that is none; FAILED_PRECONDITION where max_loss is not reached
// with all in float that may be; errors of `quantize` and of running.
StatusOr<FloatLayers> ChooseFloatLayers(const LiteGraphs& plain, const LiteRanges& ranges,
                                        std::span<const LiteSample> samples,
                                        const Quantizer& quantize, const FloatLayerFlags& flags);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_FLOAT_LAYERS_H_
