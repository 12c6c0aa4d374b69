// What quantization knows of operators: one table for every mode.
#ifndef SMELT_LITE_QUANTIZE_QUANTIZED_OPS_H_
#define SMELT_LITE_QUANTIZE_QUANTIZED_OPS_H_

#include <span>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// How an operator's results are quantized.
enum class ResultRange : uint8_t {
  kCalibrated,  // by what it gave on samples
  kFixed,       // by the operator's own range
  kAsInput,     // as its first quantized input, with which all others agree
  kNone,        // results are no numbers on a scale: bools, indices, shapes
};

struct QuantizedOp {
  OpName op;
  // Inputs that are weights where they are constant, and which dimension of them has a scale for
  // each index; -1: one scale.
  int first_weights = -1, last_weights = -1;
  int channels = -1;
  int bias = -1;                           // the input that is summed in int32; -1: none
  bool hybrid = false;                     // kernels take int8 weights beside float inputs
  bool asymmetric_inputs = false;          // which quantize these with a zero point when asked to
  bool integer = false;                    // kernels take int8 inputs, and give int8
  bool hybrid4 = false, integer4 = false;  // which of these take weights of 4 bits
  bool rows4 = false;      // they have a scale for each row then, where those of 8 bits have one
  bool blocks = false;     // hybrid ones take a scale for each block of a row of weights
  bool recurrent = false;  // an LSTM (integer_lstm.h)
  // The input whose elements results are: where it is constant, dynamic range makes both int8, and
  // dequantizes the results. -1: none.
  int picked = -1;
  ResultRange results = ResultRange::kCalibrated;
  float fixed_scale = 0;  // of int8 results
  int fixed_zero = 0;

  // The inputs that may be weights.
  std::vector<int> Weights() const;
  // The dimension of weights that has a scale for each index under the flags of a mode; -1: one
  // scale for all.
  template <typename Flags>
  int ScaledDimension(const Flags& flags) const {
    const bool dense = op == OpName("tfl.fully_connected");
    return flags.per_channel && (!dense || flags.per_channel_dense) ? channels : -1;
  }
};

// nullptr: there is no quantized kernel.
const QuantizedOp* FindQuantizedOp(OpName op);
struct IntegerFlags;
// Do the integer kernels of the operator take what the flags say, int8, uint8 or int16?
bool TakesIntegers(OpName op, const IntegerFlags& flags);

// "CONV_2D" of a node of op tfl.conv_2d.
std::string OperatorName(const Node& n);
// Sets Tin after an input took another type.
Status UpdateInputTypes(Graph& graph, Node* n);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_QUANTIZED_OPS_H_
