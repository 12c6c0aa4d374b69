#include "smelt/lite/quantize/quantized_ops.h"

#include <algorithm>

#include "smelt/lite/quantize/quantize.h"

namespace smelt {
namespace {

// Rows by what the kernels of LiteRT take; fixed ranges and agreements of the quantization
// specification.
constexpr QuantizedOp Affine(OpName op, int weights, int channels, int bias, bool hybrid,
                             bool asymmetric) {
  return {.op = op,
          .first_weights = weights,
          .last_weights = weights,
          .channels = channels,
          .bias = bias,
          .hybrid = hybrid,
          .asymmetric_inputs = asymmetric,
          .integer = true};
}
// Of a depthwise convolution the hybrid kernel takes no weights of 4 bits.
constexpr QuantizedOp WithInt4(QuantizedOp op, bool hybrid, bool blocks) {
  op.hybrid4 = hybrid;
  op.integer4 = true;
  op.blocks = blocks;
  return op;
}
constexpr QuantizedOp Measured(OpName op) { return {.op = op, .integer = true}; }
constexpr QuantizedOp SameScale(OpName op) {
  return {.op = op, .integer = true, .results = ResultRange::kAsInput};
}
constexpr QuantizedOp Fixed(OpName op, float scale, int zero) {
  return {.op = op,
          .integer = true,
          .results = ResultRange::kFixed,
          .fixed_scale = scale,
          .fixed_zero = zero};
}
constexpr QuantizedOp Picks(OpName op, int input) {
  QuantizedOp row = SameScale(op);
  row.picked = input;
  return row;
}
constexpr QuantizedOp NoNumbers(OpName op) {
  return {.op = op, .integer = true, .results = ResultRange::kNone};
}

constexpr QuantizedOp kOps[] = {
    WithInt4(Affine("tfl.conv_2d", 1, 0, 2, true, false), true, false),
    WithInt4(Affine("tfl.depthwise_conv_2d", 1, 3, 2, true, false), false, false),
    WithInt4(Affine("tfl.fully_connected", 1, 0, 2, true, true), true, true),
    Affine("tfl.transpose_conv", 1, 0, 3, true, false),
    Affine("tfl.batch_matmul", 1, -1, -1, true, true),
    {.op = "tfl.embedding_lookup",
     .first_weights = 1,
     .last_weights = 1,
     .hybrid = true,
     .hybrid4 = true,
     .rows4 = true,
     .blocks = true},
    {.op = "tfl.unidirectional_sequence_lstm",
     .first_weights = 1,
     .last_weights = 8,
     .hybrid = true,
     .asymmetric_inputs = true,
     .integer = true,
     .recurrent = true},
    {.op = "tfl.lstm", .integer = true, .recurrent = true},
    {.op = "tfl.bidirectional_sequence_lstm",
     .first_weights = 1,
     .last_weights = 8,
     .hybrid = true,
     .asymmetric_inputs = true},
    {.op = "tfl.unidirectional_sequence_rnn",
     .first_weights = 1,
     .last_weights = 2,
     .hybrid = true,
     .asymmetric_inputs = true},
    {.op = "tfl.svdf",
     .first_weights = 1,
     .last_weights = 2,
     .hybrid = true,
     .asymmetric_inputs = true},
    Measured("tfl.add"),
    Measured("tfl.sub"),
    Measured("tfl.mul"),
    Measured("tfl.div"),
    Measured("tfl.square"),
    Measured("tfl.squared_difference"),
    Measured("tfl.mean"),
    Measured("tfl.sum"),
    Measured("tfl.leaky_relu"),
    Measured("tfl.prelu"),
    Measured("tfl.hard_swish"),
    Measured("tfl.elu"),
    Measured("tfl.exp"),
    Measured("tfl.log"),
    Measured("tfl.rsqrt"),
    Measured("tfl.gelu"),
    Measured("tfl.relu"),
    Measured("tfl.relu6"),
    Measured("tfl.relu_n1_to_1"),
    Measured("tfl.relu_0_to_1"),
    Measured("tfl.abs"),
    Fixed("tfl.logistic", 1.0f / 256, -128),
    Fixed("tfl.softmax", 1.0f / 256, -128),
    Fixed("tfl.tanh", 1.0f / 128, 0),
    Fixed("tfl.l2_normalization", 1.0f / 128, 0),
    Fixed("tfl.log_softmax", 16.0f / 256, 127),
    SameScale("tfl.average_pool_2d"),
    SameScale("tfl.max_pool_2d"),
    SameScale("tfl.concatenation"),
    SameScale("tfl.reshape"),
    SameScale("tfl.resize_bilinear"),
    SameScale("tfl.resize_nearest_neighbor"),
    SameScale("tfl.space_to_depth"),
    SameScale("tfl.depth_to_space"),
    SameScale("tfl.space_to_batch_nd"),
    SameScale("tfl.batch_to_space_nd"),
    SameScale("tfl.pad"),
    SameScale("tfl.padv2"),
    SameScale("tfl.mirror_pad"),
    Picks("tfl.gather", 0),
    SameScale("tfl.gather_nd"),
    SameScale("tfl.transpose"),
    SameScale("tfl.squeeze"),
    SameScale("tfl.expand_dims"),
    SameScale("tfl.maximum"),
    SameScale("tfl.minimum"),
    SameScale("tfl.slice"),
    SameScale("tfl.strided_slice"),
    SameScale("tfl.split"),
    SameScale("tfl.split_v"),
    SameScale("tfl.pack"),
    SameScale("tfl.unpack"),
    SameScale("tfl.tile"),
    SameScale("tfl.broadcast_to"),
    SameScale("tfl.reduce_max"),
    SameScale("tfl.reduce_min"),
    SameScale("tfl.reverse_v2"),
    SameScale("tfl.topk_v2"),
    SameScale("tfl.select"),
    SameScale("tfl.select_v2"),
    SameScale("tfl.dynamic_update_slice"),
    NoNumbers("tfl.shape"),
    NoNumbers("tfl.rank"),
    NoNumbers("tfl.arg_max"),
    NoNumbers("tfl.arg_min"),
    NoNumbers("tfl.equal"),
    NoNumbers("tfl.not_equal"),
    NoNumbers("tfl.less"),
    NoNumbers("tfl.less_equal"),
    NoNumbers("tfl.greater"),
    NoNumbers("tfl.greater_equal"),
};

bool TakesUint8(OpName op) {
  // Measured: LiteRT's kernels refuse it, or TensorFlow's converter leaves them float.
  constexpr OpSet kNone = {"tfl.abs",
                           "tfl.batch_matmul",
                           "tfl.div",
                           "tfl.elu",
                           "tfl.exp",
                           "tfl.log",
                           "tfl.lstm",
                           "tfl.not_equal",
                           "tfl.rsqrt",
                           "tfl.relu_0_to_1",
                           "tfl.square",
                           "tfl.squared_difference",
                           "tfl.unidirectional_sequence_lstm"};
  return !kNone.Contains(op);
}

bool TakesInt16(OpName op) {
  // Measured: LiteRT's kernels refuse it, or answer wrongly (PRELU), or compare steps of several
  // scales as if they were of one.
  constexpr OpSet kNone = {"tfl.arg_max",
                           "tfl.arg_min",
                           "tfl.depth_to_space",
                           "tfl.div",
                           "tfl.elu",
                           "tfl.equal",
                           "tfl.greater",
                           "tfl.greater_equal",
                           "tfl.hard_swish",
                           "tfl.l2_normalization",
                           "tfl.less",
                           "tfl.less_equal",
                           "tfl.log_softmax",
                           "tfl.not_equal",
                           "tfl.prelu",
                           "tfl.relu_0_to_1",
                           "tfl.relu_n1_to_1",
                           "tfl.space_to_depth"};
  return !kNone.Contains(op);
}

}  // namespace

std::vector<int> QuantizedOp::Weights() const {
  std::vector<int> out;
  if (first_weights < 0) return out;
  for (int i = first_weights; i <= last_weights; ++i) out.push_back(i);
  return out;
}

const QuantizedOp* FindQuantizedOp(OpName op) {
  const auto* row = std::ranges::find(kOps, op, &QuantizedOp::op);
  return row == std::end(kOps) || op.unknown() ? nullptr : row;
}

bool TakesIntegers(OpName op, const IntegerFlags& flags) {
  return (!flags.int16 || TakesInt16(op)) && (!flags.uint8 || TakesUint8(op)) &&
         (!flags.stated_ranges || op != "tfl.square");
}

}  // namespace smelt
