// Quantization of a graph of operators after its fusions.
#ifndef SMELT_LITE_QUANTIZE_QUANTIZE_H_
#define SMELT_LITE_QUANTIZE_QUANTIZE_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "smelt/graph/graph.h"
#include "smelt/lite/quantize/calibrate.h"
#include "smelt/lite/quantize/integer_format.h"

namespace smelt {

// Float weights become half, each made float again by a DEQUANTIZE that runs once: every float
// constant that an operator reads, whatever its size.
Status QuantizeToHalf(Graph& graph);

struct DynamicRangeFlags {
  int64_t least_elements = 1024;  // of weights that are worth it
  bool per_channel = true;
  bool per_channel_dense = true;  // of FULLY_CONNECTED, where per_channel
  int weight_bits = 8;            // 4: where kernels take such weights
  int64_t block_size = 0;         // weights that have a scale, where kernels take that; 0: none
  std::set<std::string, std::less<>>
      float_ops;  // names of operators, as "CONV_2D", left as they are
  std::set<std::string, std::less<>> float_nodes;  // of nodes
};
// Weights of operators that multiply int8 weights by floats, quantizing these as they run, become
// int8 or int4. INVALID_ARGUMENT names the node whose weights are not finite.
Status QuantizeDynamicRange(Graph& graph, const DynamicRangeFlags& flags);

struct IntegerFlags {
  bool int16 = false;   // activations of int16 beside int8 weights
  bool bias32 = false;  // biases of int32 beside these, where kernels take them
  bool per_channel = true;
  bool per_channel_dense = true;  // of FULLY_CONNECTED, where per_channel
  bool only_integer = false;      // an operator that stays float is an error
  int weight_bits = 8;            // 4: where kernels take such weights
  bool uint8 = false;  // activations, and weights with one scale, of uint8: as version 1 had them
  // How arguments stand for numbers, by their index: they do not become float first.
  std::map<int64_t, Params> input_params;
  std::optional<LiteRange> default_range;  // of results that have none
  // A result that stays float where integers are wanted is no error.
  bool some_borders = false;
  // Operators whose results have a range of their own are quantized where the model states it.
  bool only_stated = false;
  // No range is of samples: SQUARE stays float, as TensorFlow's converter leaves it.
  bool stated_ranges = false;
  // Weights that training rounded to integers of 4 bits are int4, where kernels take such weights.
  bool low_bits = false;
  bool variables = false;  // what variables hold is integers, too (kVariableScale)
  Dtype input_type = Dtype::kFloat, output_type = Dtype::kFloat;
  std::set<std::string, std::less<>>
      float_ops;  // names of operators, as "CONV_2D", left as they are
  std::set<std::string, std::less<>> float_nodes;  // of nodes
};
// Operators that have integer kernels compute in int8, or int16, by the ranges that samples showed;
// others stay float between a DEQUANTIZE and a QUANTIZE. INVALID_ARGUMENT names the node whose
// weights are not finite; UNIMPLEMENTED lists operators that stay float where that is refused.
Status QuantizeToInteger(Graph& graph, const LiteRanges& ranges, const IntegerFlags& flags);

// The float arguments and results of a quantized graph become integers: what the operators behind
// and before them have, or uint8 beside int8. FAILED_PRECONDITION names an argument or a result
// that stays float because operators want floats there; where `some`, these stay so.
Status NarrowBorders(Graph& graph, Dtype input, Dtype output, bool some = false);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_QUANTIZE_H_
