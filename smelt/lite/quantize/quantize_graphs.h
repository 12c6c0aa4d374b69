// Quantization of all graphs of a signature, as TensorFlow's converter does it: of each function of
// the file.
#ifndef SMELT_LITE_QUANTIZE_QUANTIZE_GRAPHS_H_
#define SMELT_LITE_QUANTIZE_QUANTIZE_GRAPHS_H_

#include <optional>
#include <span>

#include "smelt/lite/quantize/float_layers.h"
#include "smelt/lite/quantize/graphs.h"
#include "smelt/lite/quantize/quantize.h"

namespace smelt {

// How numbers are stored and computed.
enum class LiteQuantize : uint8_t { kNone, kFloat16, kDynamic, kInt8, kInt16x8 };

struct QuantizeGraphsFlags {
  LiteQuantize mode = LiteQuantize::kNone;
  IntegerFlags integer;  // of kInt8 and kInt16x8; types of inputs and outputs are the main graph's
  DynamicRangeFlags dynamic;
  FloatLayerFlags float_layers;
  // Ranges are those that the model or `integer` states: no samples are wanted.
  bool by_ranges = false;
  bool calibrate_only = false;  // ranges are stated (StateRanges), numbers stay float
};

// What loops and branches pass stays float. `samples`: of the main graph's arguments, where numbers
// get ranges or are measured; a body has the ranges of all its runs, and none where no sample came
// there: its layers stay float then, but for weights of kDynamic. Returns which layers stay float
// where the flags ask for that. INVALID_ARGUMENT where samples are missing; errors of the modes
// (quantize.h), which name the function, and of ChooseFloatLayers.
StatusOr<std::optional<FloatLayers>> QuantizeGraphs(LiteGraphs& graphs,
                                                    std::span<const LiteSample> samples,
                                                    QuantizeGraphsFlags flags);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_QUANTIZE_GRAPHS_H_
