// What quantization adds to graphs of operators, layer by layer, measured on samples.
#ifndef SMELT_LITE_QUANTIZE_LAYER_ERRORS_H_
#define SMELT_LITE_QUANTIZE_LAYER_ERRORS_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "smelt/lite/quantize/calibrate.h"
#include "smelt/lite/quantize/noise.h"

namespace smelt {

// What TensorFlow's quantization debugger says of a result: of what it has more than the float
// operator, each number the mean of those of the samples.
struct ResultStatistics {
  int output = 0;
  double elements = 0, stddev = 0, mean = 0, largest = 0, squared = 0;
  float scale = 0;  // 0: it is float
  int64_t zero_point = 0;
  int32_t tensor = -1;  // of the file; -1: not known
};

// A quantized operator. Where it has several results, signal and noise are of all of them, and the
// range is that of the first which is quantized.
struct LayerError {
  std::string function;  // whose body has it; empty: the main graph
  std::string node;
  std::string op;  // "CONV_2D"
  // Does it move numbers without computing any? Its results have the scale of its input.
  bool moves = false;
  Noise alone;        // beside the float operator on the same, rounded, numbers
  Noise accumulated;  // beside the float graph
  Noise weights;      // of its constants
  LiteRange range;    // what was calibrated
  int64_t steps = 0;  // of the type of its first result; 0: its results are float
  int64_t used = 0;   // those of them that the samples gave
  std::vector<ResultStatistics> results;  // the float operator's on the same, rounded, numbers
  // What the graph's worst result would be if this layer alone were left in float.
  std::optional<Noise> outputs_in_float;
};

struct LayerErrors {
  std::vector<LayerError> layers;  // of the main graph, in the order in which they run
  // Those of loops and branches, of which `weights` and `range` are known: what comes there in each
  // turn is not compared.
  std::vector<LayerError> in_bodies;
  std::vector<std::string> float_bodies;  // functions that compute in float alone
  std::vector<Noise> outputs;             // of the main graph's results
};

// `quantized` is `plain` after quantization, with arguments and results as `plain` has them;
// operators have their names in both. Errors of running, which name the sample.
StatusOr<LayerErrors> MeasureLayers(const LiteGraphs& plain, const LiteGraphs& quantized,
                                    const LiteRanges& ranges, std::span<const LiteSample> samples);

// The results of the main graph on samples.
StatusOr<std::vector<std::vector<Tensor>>> AnswersOf(const LiteGraphs& graphs,
                                                     std::span<const LiteSample> samples);
// Of each result.
StatusOr<std::vector<Noise>> NoiseOf(std::span<const std::vector<Tensor>> wanted,
                                     std::span<const std::vector<Tensor>> got);
// The one with the greatest part of noise; without results there is none.
Noise WorstOf(std::span<const Noise> outputs);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_LAYER_ERRORS_H_
