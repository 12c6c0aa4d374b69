// Operators of .tflite files whose tensors are of other types than they take: each tensor in turn
// of every type that the schema has. Each is an answer of the type that the file states, or an
// error.
#include <gtest/gtest.h>

#include "tests/tflite_text.h"

namespace smelt {
namespace {

constexpr struct {
  absl::string_view name;
  Dtype dtype;
} kTypes[] = {
    {"FLOAT32", Dtype::kFloat},
    {"FLOAT16", Dtype::kHalf},
    {"INT32", Dtype::kInt32},
    {"UINT8", Dtype::kUint8},
    {"INT64", Dtype::kInt64},
    {"STRING", Dtype::kString},
    {"BOOL", Dtype::kBool},
    {"INT16", Dtype::kInt16},
    {"INT8", Dtype::kInt8},
    {"COMPLEX64", Dtype::kComplex64},
    {"FLOAT64", Dtype::kDouble},
    {"UINT64", Dtype::kUint64},
    {"RESOURCE", Dtype::kResource},
    {"VARIANT", Dtype::kVariant},
    {"UINT32", Dtype::kUint32},
    {"UINT16", Dtype::kUint16},
    {"COMPLEX128", Dtype::kComplex128},
    {"INT4", Dtype::kInt4},
    {"BFLOAT16", Dtype::kBfloat16},
};

struct Operand {
  absl::string_view shape;  // empty: it is left out
  absl::string_view type = "FLOAT32";
  bool variable = false;
};

struct Operator {
  absl::string_view code;
  std::vector<Operand> inputs, outputs;
  absl::string_view options = "";
};

// With operand `other`, inputs first, of another type; -1: none.
StatusOr<NamedTensors> RunWith(const Operator& op, int other, absl::string_view type) {
  TfliteText text;
  std::vector<int> in, out;
  int at = 0;
  const auto add = [&](const Operand& t, bool input) {
    if (t.shape.empty()) return -1;
    const absl::string_view is = at++ == other ? type : t.type;
    std::string more;
    if (is == "INT8" || is == "UINT8" || is == "INT16" || is == "INT32" || is == "INT4") {
      more = "quantization: {scale: [0.5], zero_point: [0]}, ";
    }
    if (t.variable) more += "is_variable: true, ";
    return input && !t.variable ? text.Input(t.shape, is, more) : text.Tensor(t.shape, is, more);
  };
  for (const Operand& t : op.inputs) in.push_back(add(t, true));
  for (const Operand& t : op.outputs) out.push_back(add(t, false));
  text.Op(op.code, in, out, op.options);
  return RunTflite(text.Bytes(out));
}

std::vector<Operator> Operators() {
  const Operand state = {"[1,2]", "FLOAT32", true};
  const Operand square = {"[2,2]"}, row = {"[2]"}, none = {""}, steps = {"[1,3,2]"}, x = {"[1,2]"};
  // Input, three times four weights, peepholes, four biases, a projection, states, four norms.
  const auto lstm = [&](const Operand& input) {
    return std::vector<Operand>{input,  square, square, square, square, square, square,
                                square, square, none,   none,   none,   row,    row,
                                row,    row,    none,   none,   state,  state};
  };
  std::vector<Operand> both = {steps};
  for (int way = 0; way < 2; ++way) {
    for (int i = 1; i < 18; ++i) both.push_back(lstm(steps)[static_cast<size_t>(i)]);
  }
  for (int i = 0; i < 4; ++i) both.push_back(state);
  for (int i = 0; i < 9; ++i) both.push_back(none);
  const Operand image = {"[1,4,4,2]"}, int8_image = {"[1,4,4,2]", "INT8"};
  const Operand times = {"[1]", "INT32"};
  return {
      {"SVDF",
       {x, square, {"[2,3]"}, none, {"[1,6]", "FLOAT32", true}},
       {x},
       "SVDFOptions: {rank: 1}"},
      {"SVDF",
       {{"[1,2]", "INT8"},
        {"[2,2]", "INT8"},
        {"[2,3]", "INT16"},
        {"[2]", "INT32"},
        {"[1,6]", "INT16", true}},
       {{"[1,2]", "INT8"}},
       "SVDFOptions: {rank: 1, fused_activation_function: \"RELU\"}"},
      {"RNN",
       {x, square, square, row, state},
       {x},
       "RNNOptions: {fused_activation_function: \"TANH\"}"},
      {"UNIDIRECTIONAL_SEQUENCE_RNN",
       {steps, square, square, row, state},
       {steps},
       "SequenceRNNOptions: {fused_activation_function: \"TANH\"}"},
      {"BIDIRECTIONAL_SEQUENCE_RNN",
       {steps, square, square, row, state, square, square, row, state, none, none, none},
       {steps, steps},
       "BidirectionalSequenceRNNOptions: {fused_activation_function: \"TANH\"}"},
      {"LSTM", lstm(x), {x}, "LSTMOptions: {fused_activation_function: \"TANH\"}"},
      {"UNIDIRECTIONAL_SEQUENCE_LSTM",
       lstm(steps),
       {steps},
       "UnidirectionalSequenceLSTMOptions: {fused_activation_function: \"TANH\"}"},
      {"BIDIRECTIONAL_SEQUENCE_LSTM",
       both,
       {steps, steps},
       "BidirectionalSequenceLSTMOptions: {fused_activation_function: \"TANH\", time_major: "
       "false}"},
      {"EMBEDDING_LOOKUP", {times, square}, {x}},
      {"EMBEDDING_LOOKUP", {times, {"[2,2]", "INT8"}}, {x}},
      {"EMBEDDING_LOOKUP_SPARSE",
       {{"[0]", "INT32"}, {"[0,2]", "INT32"}, {"[2]", "INT32"}, {"[0]"}, square},
       {{"[0,2]"}},
       "EmbeddingLookupSparseOptions: {combiner: \"MEAN\"}"},
      {"HASHTABLE_LOOKUP", {times, {"[2]", "INT32"}, square}, {x, {"[1]", "UINT8"}}},
      {"QUANTIZE", {{"[1,2]", "INT16"}}, {{"[1,2]", "INT8"}}},
      {"DEQUANTIZE", {{"[1,2]", "INT8"}}, {{"[1,2]"}}},
      {"LSH_PROJECTION",
       {square, {"[2]", "INT32"}, row},
       {{"[2]", "INT32"}},
       "LSHProjectionOptions: {type: \"SPARSE\"}"},
      {"SKIP_GRAM",
       {{"[1]", "STRING"}},
       {{"[1]", "STRING"}},
       "SkipGramOptions: {ngram_size: 1, max_skip_size: 1}"},
      {"CONV_2D",
       {image, {"[3,1,1,2]"}, {"[3]"}},
       {{"[1,4,4,3]"}},
       "Conv2DOptions: {stride_h: 1, stride_w: 1}"},
      {"CONV_2D",
       {int8_image, {"[3,1,1,2]", "INT8"}, {"[3]", "INT32"}},
       {{"[1,4,4,3]", "INT8"}},
       "Conv2DOptions: {stride_h: 1, stride_w: 1}"},
      {"DEPTHWISE_CONV_2D",
       {int8_image, {"[1,1,1,2]", "INT8"}, {"[2]", "INT32"}},
       {int8_image},
       "DepthwiseConv2DOptions: {stride_h: 1, stride_w: 1, depth_multiplier: 1}"},
      {"FULLY_CONNECTED", {x, square, row}, {x}, "FullyConnectedOptions: {}"},
      {"FULLY_CONNECTED",
       {{"[1,2]", "INT8"}, {"[2,2]", "INT8"}, {"[2]", "INT32"}},
       {{"[1,2]", "INT8"}},
       "FullyConnectedOptions: {}"},
      {"BATCH_MATMUL",
       {{"[1,2,2]", "INT8"}, {"[1,2,2]", "INT8"}},
       {{"[1,2,2]", "INT8"}},
       "BatchMatMulOptions: {}"},
      {"CONCATENATION",
       {{"[1,2]", "INT8"}, {"[1,2]", "INT8"}},
       {{"[1,4]", "INT8"}},
       "ConcatenationOptions: {axis: 1}"},
      {"AVERAGE_POOL_2D",
       {int8_image},
       {int8_image},
       "Pool2DOptions: {stride_h: 1, stride_w: 1, filter_height: 1, filter_width: 1}"},
      {"SOFTMAX", {{"[1,2]", "INT8"}}, {{"[1,2]", "INT8"}}, "SoftmaxOptions: {beta: 1}"},
      {"LOG_SOFTMAX", {{"[1,2]", "INT8"}}, {{"[1,2]", "INT8"}}},
      {"PRELU", {{"[1,2]", "INT8"}, {"[2]", "INT8"}}, {{"[1,2]", "INT8"}}},
      {"MEAN", {{"[1,2]", "INT8"}, times}, {{"[2]", "INT8"}}, "ReducerOptions: {}"},
      {"REDUCE_MAX", {{"[1,2]", "INT8"}, times}, {{"[2]", "INT8"}}, "ReducerOptions: {}"},
      {"SELECT_V2", {{"[1,2]", "BOOL"}, {"[1,2]", "INT8"}, {"[2]", "INT8"}}, {{"[1,2]", "INT8"}}},
      {"ADD", {{"[1,2]", "INT8"}, {"[2]", "INT8"}}, {{"[1,2]", "INT8"}}, "AddOptions: {}"},
      {"SUB", {{"[1,2]", "UINT8"}, {"[2]", "UINT8"}}, {{"[1,2]", "UINT8"}}, "SubOptions: {}"},
      {"LESS", {{"[1,2]", "INT8"}, {"[2]", "INT8"}}, {{"[1,2]", "BOOL"}}},
      {"TANH", {{"[1,2]", "INT16"}}, {{"[1,2]", "INT16"}}},
      {"UNSORTED_SEGMENT_SUM", {{"[0,2]"}, {"[0]", "INT32"}, {"[]", "INT32"}}, {{"[0,2]"}}},
      {"SEGMENT_SUM", {square, {"[2]", "INT32"}}, {x}},
  };
}

TEST(TfliteTypes, EveryTensorOfEveryType) {
  for (const Operator& op : Operators()) {
    const auto said = RunWith(op, -1, "");
    EXPECT_TRUE(said.ok()) << op.code << " as it should be: " << said.status();
    const auto is_there = [](const Operand& t) { return !t.shape.empty(); };
    const auto inputs = static_cast<int>(std::ranges::count_if(op.inputs, is_there));
    const int all = inputs + static_cast<int>(op.outputs.size());
    for (int i = 0; i < all; ++i) {
      for (const auto& type : kTypes) {
        const auto answers = RunWith(op, i, type.name);
        if (!answers.ok()) {
          EXPECT_FALSE(absl::IsInternal(answers.status()) || absl::IsUnknown(answers.status()))
              << op.code << " tensor " << i << " of " << type.name << ": " << answers.status();
          continue;
        }
        const auto answer = answers->find(absl::StrCat("t", i));
        if (answer == answers->end()) continue;
        EXPECT_EQ(answer->second.dtype(), type.dtype) << op.code << " output " << i;
      }
    }
  }
}

}  // namespace
}  // namespace smelt
