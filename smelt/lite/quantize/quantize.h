// Quantization of a graph of operators after its fusions.
#ifndef SMELT_LITE_QUANTIZE_QUANTIZE_H_
#define SMELT_LITE_QUANTIZE_QUANTIZE_H_

#include <set>
#include <string>

#include "smelt/graph/graph.h"
#include "smelt/lite/quantize/calibrate.h"

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
  bool int16 = false;  // activations of int16 beside int8 weights
  bool per_channel = true;
  bool per_channel_dense = true;  // of FULLY_CONNECTED, where per_channel
  bool only_integer = false;      // an operator that stays float is an error
  int weight_bits = 8;            // 4: where kernels take such weights
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
// that stays float because operators want floats there.
Status NarrowBorders(Graph& graph, Dtype input, Dtype output);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_QUANTIZE_H_
