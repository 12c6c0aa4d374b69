// .tflite files that no honest program writes: each is refused in words that name what is wrong,
// or runs; none takes more memory, time or stack than it should.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "smelt/base/heap.h"
#include "smelt/graph/op_name.h"
#include "smelt/lite/common/operand_counts.h"
#include "tests/tflite_text.h"
#include "tflite_generated.h"

namespace smelt {
namespace {

using absl::StatusCode;

// y = x + c, with every part that a file may have.
constexpr char kBase[] = R"({
  version: 3,
  operator_codes: [{builtin_code: "ADD", version: 1}],
  subgraphs: [{
    name: "main",
    tensors: [
      {name: "x", shape: [1, 2], shape_signature: [-1, 2], buffer: 1, has_rank: true},
      {name: "c", shape: [2], buffer: 2, has_rank: true},
      {name: "y", shape: [1, 2], shape_signature: [-1, 2], buffer: 1, has_rank: true}],
    inputs: [0], outputs: [2],
    operators: [{opcode_index: 0, inputs: [0, 1], outputs: [2],
                 builtin_options_type: "AddOptions", builtin_options: {}}]}],
  buffers: [{}, {}, {data: [0, 0, 128, 63, 0, 0, 0, 64]}, {data: [1]}],
  metadata: [{name: "m", buffer: 3}],
  signature_defs: [{signature_key: "s", subgraph_index: 0,
                    inputs: [{name: "a", tensor_index: 0}], outputs: [{name: "b", tensor_index: 2}]}]
})";

std::string Changed(absl::string_view from, absl::string_view to) {
  std::string text = kBase;
  EXPECT_GT(absl::StrReplaceAll({{from, to}}, &text), 0) << from;
  return text;
}

void ExpectRefused(const Status& status, StatusCode code, absl::string_view words,
                   absl::string_view what) {
  EXPECT_EQ(status.code(), code) << what << "\n" << status;
  EXPECT_TRUE(absl::StrContains(status.message(), words)) << what << "\n" << status;
}

TEST(Tflite, TheHonestFileRuns) {
  const auto answers = RunTflite(TfliteOfText(kBase));
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->at("b").flat<float>()[1], 2);
}

TEST(Tflite, WhatAFileStatesIsChecked) {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  constexpr auto kUnknown = StatusCode::kUnimplemented;
  const struct {
    absl::string_view from, to;
    StatusCode code;
    absl::string_view words;
  } kCases[] = {
      {"version: 3,", "version: 4,", kInvalid, "schema version 4, not 3"},
      // Tensors by their numbers.
      {"inputs: [0], outputs: [2],", "inputs: [3], outputs: [2],", kInvalid,
       "subgraph 0: input 0 is tensor 3 of 3"},
      {"inputs: [0], outputs: [2],", "inputs: [-1], outputs: [2],", kInvalid,
       "subgraph 0: input 0 is tensor -1 of 3"},
      {"inputs: [0], outputs: [2],", "inputs: [0], outputs: [-2147483648],", kInvalid,
       "subgraph 0: output 0 is tensor -2147483648 of 3"},
      {"inputs: [0, 1], outputs", "inputs: [0, 3], outputs", kInvalid,
       "operator 0 (ADD): input 1 is tensor 3 of 3"},
      {"inputs: [0, 1], outputs", "inputs: [0, -2], outputs", kInvalid,
       "operator 0 (ADD): input 1 is tensor -2 of 3"},
      {"inputs: [0, 1], outputs", "inputs: [0, -1], outputs", kInvalid,
       "operator 'y' (tfl.add): its input 1 is left out"},
      {"inputs: [0, 1], outputs: [2]", "inputs: [0, 1], outputs: [-1]", kInvalid,
       "operator 0 (ADD): output 0 is tensor -1 of 3"},
      {"inputs: [0, 1], outputs: [2]", "inputs: [0, 1], outputs: [2], intermediates: [9]", kInvalid,
       "intermediate 0 is tensor 9 of 3"},
      {"inputs: [0], outputs: [2],", "inputs: [0, 0], outputs: [2],", kInvalid, "is two inputs"},
      {"inputs: [0], outputs: [2],", "inputs: [], outputs: [2],", kInvalid,
       "tensor 0 'x' is read before it is there"},
      // How many an operator has.
      {"inputs: [0, 1], outputs", "inputs: [0], outputs", kInvalid, "it has 1 inputs, not 2"},
      {"inputs: [0, 1], outputs", "inputs: [], outputs", kInvalid, "it has 0 inputs, not 2"},
      {"inputs: [0, 1], outputs", "inputs: [0, 1, 1], outputs", kInvalid, "it has 3 inputs, not 2"},
      {"inputs: [0, 1], outputs: [2]", "inputs: [0, 1], outputs: []", kInvalid,
       "output 0: tensor 2 'y' is read before it is there"},
      // What is made twice, or not at all, or is a constant.
      {"inputs: [0, 1], outputs: [2]", "inputs: [0, 1], outputs: [0]", kInvalid,
       "tensor 0 'x' is made twice"},
      {"inputs: [0, 1], outputs: [2]", "inputs: [0, 1], outputs: [2, 2]", kInvalid,
       "tensor 2 'y' is made twice"},
      {"inputs: [0, 1], outputs: [2]", "inputs: [0, 1], outputs: [1]", kInvalid,
       "tensor 1 'c' is a constant, which no operator makes"},
      {"operators: [{opcode_index: 0, inputs: [0, 1], outputs: [2],\n"
       "                 builtin_options_type: \"AddOptions\", builtin_options: {}}]",
       "operators: []", kInvalid, "output 0: tensor 2 'y' is read before it is there"},
      {"inputs: [0, 1], outputs: [2]", "inputs: [2, 1], outputs: [2]", kInvalid,
       "operator 0 (ADD): tensor 2 'y' is read before it is there"},
      // Shapes.
      {"{name: \"c\", shape: [2]", "{name: \"c\", shape: [-2]", kInvalid,
       "tensor 1 'c': its shape has the size -2"},
      {"{name: \"c\", shape: [2]", "{name: \"c\", shape: [3]", kInvalid,
       "tensor 1 'c': its buffer has 8 bytes, which are not 3 elements of float"},
      {"{name: \"c\", shape: [2]", "{name: \"c\", shape: [1]", kInvalid,
       "tensor 1 'c': its buffer has 8 bytes, which are not 1 elements of float"},
      {"{name: \"c\", shape: [2]", "{name: \"c\", shape: []", kInvalid, "not 1 elements of float"},
      {"{name: \"c\", shape: [2]", "{name: \"c\", shape: [0]", kInvalid, "not 0 elements of float"},
      {"{name: \"c\", shape: [2]",
       "{name: \"c\", shape: [2147483647, 2147483647, 2147483647, 2147483647]", kInvalid,
       "tensor 1 'c': its shape: "},
      {"{name: \"c\", shape: [2]", "{name: \"c\", shape: [2147483647, 2147483647]", kInvalid,
       "tensor 1 'c': its shape [2147483647,2147483647] is one of more bytes than there are"},
      {"{name: \"c\", shape: [2]", "{name: \"c\", shape: [2147483647, 1024]", kInvalid,
       "its buffer has 8 bytes"},
      {"shape_signature: [-1, 2], buffer: 1, has_rank: true},\n      {name: \"c\"",
       "shape_signature: [-2, 2], buffer: 1},\n      {name: \"c\"", kInvalid,
       "tensor 0 'x': its shape signature has the size -2"},
      {"shape_signature: [-1, 2], buffer: 1, has_rank: true},\n      {name: \"c\"",
       "shape_signature: [-1], buffer: 1},\n      {name: \"c\"", kInvalid,
       "its shape has 2 dimensions and its signature 1"},
      // Types.
      {"{name: \"c\", shape: [2]", "{name: \"c\", type: 99, shape: [2]", kInvalid,
       "tensor 1 'c': it has the unknown type 99"},
      {"{name: \"c\", shape: [2]", "{name: \"c\", type: \"RESOURCE\", shape: [2]", kInvalid,
       "it states values of type resource"},
      {"{name: \"y\", ", "{name: \"y\", type: \"INT32\", ", kInvalid,
       "operator 'y' (tfl.add): its output 0 is int32, and it makes float"},
      // Buffers.
      {"shape: [2], buffer: 2", "shape: [2], buffer: 4", kInvalid,
       "tensor 1 'c': it has buffer 4 of 4"},
      {"shape: [2], buffer: 2", "shape: [2], buffer: 4294967295", kInvalid,
       "it has buffer 4294967295 of 4"},
      {"shape: [2], buffer: 2", "shape: [2], buffer: 2, external_buffer: 1", kUnknown,
       "tensor 1 'c': its values lie in another file"},
      {"{data: [1]}", "{offset: 1000000, size: 1}", kInvalid,
       "buffer 3 of 1 bytes at 1000000 reaches beyond the end of the file"},
      {"{data: [1]}", "{offset: 18446744073709551615, size: 18446744073709551615}", kInvalid,
       "buffer 3 of 18446744073709551615 bytes at 18446744073709551615 reaches beyond"},
      {"{data: [1]}", "{offset: 16, size: 18446744073709551608}", kInvalid, "reaches beyond"},
      {"buffers: [{}, {},", "buffers: [{data: [1]}, {},", kInvalid,
       "buffer 0 of the TensorFlow Lite model is not empty"},
      {"metadata: [{name: \"m\", buffer: 3}]", "metadata: [{name: \"m\", buffer: 9}]", kInvalid,
       "metadata 'm' has buffer 9 of 4"},
      // Operators' codes and options.
      {"opcode_index: 0", "opcode_index: 1", kInvalid, "operator 0 has operator code 1 of 1"},
      {"builtin_code: \"ADD\"", "builtin_code: 1000", kUnknown,
       "operator code 0 is builtin 1000, which this program does not know"},
      {"builtin_code: \"ADD\"", "builtin_code: \"DELEGATE\"", kUnknown, "builtin 51"},
      {"builtin_code: \"ADD\"", "builtin_code: \"CUSTOM\"", kInvalid,
       "operator code 0 is a custom op without a name"},
      {"builtin_code: \"ADD\"", "builtin_code: \"CUSTOM\", custom_code: \"Mine\"", kUnknown,
       "Encountered unresolved custom op: Mine"},
      {"version: 1}", "version: -1}", kInvalid, "operator code 0 has version -1"},
      {"builtin_options_type: \"AddOptions\"", "builtin_options_type: \"Conv2DOptions\"", kInvalid,
       "operator 0 (ADD): its options are those of another operator"},
      {"builtin_options: {}", "builtin_options: {fused_activation_function: 77}", kInvalid,
       "operator 0 (ADD): option fused_activation_function is 77, which has no name"},
      {"builtin_options: {}", "builtin_options: {fused_activation_function: \"SIGN_BIT\"}",
       kUnknown, "its activation is SIGN_BIT"},
      // Signatures.
      {"subgraph_index: 0", "subgraph_index: 1", kInvalid, "signature 's' is subgraph 1 of 1"},
      {"{name: \"a\", tensor_index: 0}", "{name: \"a\", tensor_index: 3}", kInvalid,
       "'a' of signature 's' is tensor 3 of 3"},
      {"{name: \"a\", tensor_index: 0}", "{name: \"a\", tensor_index: 1}", kInvalid,
       "signature 's': tensor 1 is no input of its subgraph"},
      {"{name: \"b\", tensor_index: 2}", "{name: \"b\", tensor_index: 1}", kInvalid,
       "signature 's': tensor 1 is no output of its subgraph"},
      {"inputs: [{name: \"a\", tensor_index: 0}]", "inputs: []", kInvalid,
       "signature 's': it has no name for input 0 of its subgraph"},
      {"outputs: [{name: \"b\", tensor_index: 2}]",
       "outputs: [{name: \"b\", tensor_index: 2}, {name: \"b\", tensor_index: 2}]", kInvalid,
       "signature 's': it has two outputs 'b'"},
      {"inputs: [{name: \"a\", tensor_index: 0}]",
       "inputs: [{name: \"a\", tensor_index: 0}, {name: \"a\", tensor_index: 0}]", kInvalid,
       "signature 's': it has two inputs 'a'"},
      {"signature_defs: [{",
       "signature_defs: [{signature_key: \"s\", subgraph_index: 0, inputs: [{name: \"a\", "
       "tensor_index: 0}], outputs: []}, {",
       kInvalid, "signature 's': another one has its name"},
      {"signature_key: \"s\"", "signature_key: \"__saved_model_init_op\"", kInvalid,
       "another one has its name"},
  };
  for (const auto& c : kCases) {
    ExpectRefused(LowerTflite(TfliteOfText(Changed(c.from, c.to))), c.code, c.words, c.to);
  }
}

TEST(Tflite, QuantizationIsChecked) {
  const struct {
    absl::string_view type, shape, quantization, words;
  } kCases[] = {
      {"INT8", "[2]", "scale: [0.5, 0.5, 0.5]", "its 3 scales do not fit dimension 0"},
      {"INT8", "[2]", "scale: [0.5, 0.5], quantized_dimension: 1",
       "its 2 scales do not fit dimension 1"},
      {"INT8", "[2]", "scale: [0.5, 0.5], quantized_dimension: -1",
       "its 2 scales do not fit dimension -1"},
      {"INT8", "[2]", "scale: [0.5, 0.5], quantized_dimension: 2147483647", "do not fit"},
      {"INT8", "[2]", "scale: [0.5, 0.5], zero_point: [1]", "it has 2 scales and 1 zero points"},
      {"INT8", "[2]", "scale: [0.5], zero_point: [1, 2]", "it has 1 scales and 2 zero points"},
      {"INT8", "[2]", "scale: [-0.5]", "it has the scale -0.5"},
      {"INT8", "[2]", "scale: [nan]", "it has the scale nan"},
      {"INT8", "[2]", "scale: [inf]", "it has the scale inf"},
      {"INT8", "[2]", "scale: [0.5], zero_point: [128]", "its zero point 128 is no int8"},
      {"UINT8", "[2]", "scale: [0.5], zero_point: [-1]", "its zero point -1 is no uint8"},
      {"INT16", "[2]", "scale: [0.5], zero_point: [40000]", "its zero point 40000 is no int16"},
      {"INT32", "[2]", "scale: [0.5], zero_point: [4294967296]", "its zero point 4294967296"},
      {"INT8", "[2]",
       "details_type: \"BlockwiseQuantization\", details: {scales: 0, block_size: 0}",
       "it is quantized in blocks of 0"},
  };
  for (const auto& c : kCases) {
    TfliteText text;
    const int x =
        text.Input(c.shape, c.type, absl::StrCat("quantization: {", c.quantization, "}, "));
    ExpectRefused(LowerTflite(text.Bytes({x})), StatusCode::kInvalidArgument, c.words,
                  c.quantization);
  }
}

// Scales that old files have, and that kernels must not divide by.
TEST(Tflite, AScaleOfZeroIsNoScaleOfAKernel) {
  for (const absl::string_view code : {"RELU", "SOFTMAX", "LOGISTIC", "HARD_SWISH", "QUANTIZE"}) {
    TfliteText text;
    const int x = text.Input("[1,4]", "INT8", "quantization: {scale: [0], zero_point: [0]}, ");
    const int y = text.Tensor("[1,4]", "INT8", "quantization: {scale: [0], zero_point: [0]}, ");
    text.Op(code, {x}, {y});
    ExpectRefused(LowerTflite(text.Bytes({y})), StatusCode::kNotFound, "scale", code);
  }
}

TEST(Tflite, StringsLieInTheirBuffer) {
  const struct {
    std::vector<int32_t> words;
    absl::string_view refused;
  } kCases[] = {
      {{1, 12, 12}, ""},
      {{1, 12, 13}, "string 0 of its buffer lies at 12 to 13 of 12 bytes"},
      {{1, 12, -1}, "string 0 of its buffer lies at 12 to 4294967295 of 12 bytes"},
      {{1, 13, 12}, "string 0 of its buffer lies at 13 to 12"},
      {{2, 12, 12}, "which are not 1 elements of string"},
      {{-1, 12, 12}, "which are not 1 elements of string"},
      {{1, 12}, "which are not 1 elements of string"},
      {{1}, "which are not 1 elements of string"},
  };
  for (const auto& c : kCases) {
    TfliteText text;
    const int value = text.Const("[1]", "STRING", c.words);
    const auto status = LowerTflite(text.Bytes({value}));
    if (c.refused.empty()) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      ExpectRefused(status, StatusCode::kInvalidArgument, c.refused, c.refused);
    }
  }
}

TEST(Tflite, SparseTensorsAreChecked) {
  constexpr char kRows[] =
      "{traversal_order: [0, 1], dim_metadata: [{dense_size: 2}, {format: \"SPARSE_CSR\", "
      "array_segments_type: \"Int32Vector\", array_segments: {values: [0, 1, 2]}, "
      "array_indices_type: \"Int32Vector\", array_indices: {values: [0, 1]}}]}";
  const struct {
    absl::string_view from, to, words;
  } kCases[] = {
      {"dense_size: 2", "dense_size: 3", "no sense"},
      {"dense_size: 2", "dense_size: 2147483647", "no sense"},
      {"dense_size: 2", "dense_size: -1", "no sense"},
      {"values: [0, 1, 2]", "values: [0, 1, 9]", "no sense"},
      {"values: [0, 1, 2]", "values: [2, 1, 0]", "no sense"},
      {"values: [0, 1, 2]", "values: [0, 0, 0]", "no sense"},
      {"values: [0, 1]}", "values: [0, 2]}", "no sense"},
      {"values: [0, 1]}", "values: [0, -1]}", "no sense"},
      {"values: [0, 1]}", "values: [0]}", "no sense"},
      {"traversal_order: [0, 1]", "traversal_order: [0, 0]", "no sense"},
      {"traversal_order: [0, 1]", "traversal_order: [0]", "its sparsity has 1 dimensions"},
      {"traversal_order: [0, 1]", "traversal_order: [0, 1], block_map: [0, 0, 0]",
       "and 3 blocks for a shape of 2"},
      {"", "", ""},
  };
  for (const auto& c : kCases) {
    std::string rows = kRows;
    if (!c.from.empty()) absl::StrReplaceAll({{c.from, c.to}}, &rows);
    TfliteText text;
    const int value =
        text.Const<float>("[2,2]", "FLOAT32", {1, 2}, absl::StrCat("sparsity: ", rows, ", "));
    const int y = text.Tensor("[2,2]");
    text.Op("DENSIFY", {value}, {y});
    const auto answers = RunTflite(text.Bytes({y}));
    if (c.words.empty()) {
      ASSERT_TRUE(answers.ok()) << answers.status();
      EXPECT_EQ(answers->at("t1").flat<float>()[3], 2);
    } else {
      ExpectRefused(answers.status(), StatusCode::kInvalidArgument, c.words, c.to);
    }
  }
  TfliteText text;
  const int value =
      text.Const<uint8_t>("[2]", "INT4", {1}, absl::StrCat("sparsity: ", kRows, ", "));
  ExpectRefused(LowerTflite(text.Bytes({value})), StatusCode::kUnimplemented,
                "a sparse tensor of int4", "int4");
}

// ---- subgraphs that call each other

constexpr char kCondition[] = "BOOL";

TEST(Tflite, SubgraphsDoNotRecur) {
  const struct {
    absl::string_view code, options;
    std::vector<int> subgraphs;
  } kCases[] = {
      {"WHILE", "WhileOptions: {cond_subgraph_index: 0, body_subgraph_index: 0}", {}},
      {"IF", "IfOptions: {then_subgraph_index: 0, else_subgraph_index: 0}", {}},
      {"CALL_ONCE", "CallOnceOptions: {init_subgraph_index: 0}", {}},
      {"CALL", "CallOptions: {subgraph: 0}", {}},
      {"STABLEHLO_COMPOSITE",
       "StableHLOCompositeOptions: {name: \"f\", decomposition_subgraph_index: 0}",
       {}},
  };
  for (const auto& c : kCases) {
    TfliteText text;
    const int x = text.Input("[]", kCondition);
    const bool nothing = c.code == "CALL_ONCE";
    const int y = nothing ? x : text.Tensor("[]", kCondition);
    text.Op(c.code, nothing ? std::vector<int>{} : std::vector<int>{x},
            nothing ? std::vector<int>{} : std::vector<int>{y}, c.options);
    ExpectRefused(LowerTflite(text.Bytes({y})), StatusCode::kInvalidArgument,
                  "calls subgraph 's0', which is calling it", c.code);
  }
}

TEST(Tflite, SubgraphsAreThere) {
  for (const absl::string_view options :
       {"WhileOptions: {cond_subgraph_index: 1, body_subgraph_index: 9}",
        "WhileOptions: {cond_subgraph_index: -1, body_subgraph_index: 1}"}) {
    TfliteText text;
    const int x = text.Input("[]", kCondition), y = text.Tensor("[]", kCondition);
    text.Op("WHILE", {x}, {y}, options);
    text.EndSubgraph({y});
    text.Input("[]", kCondition);
    text.EndSubgraph({0});
    ExpectRefused(LowerTflite(text.Bytes()), StatusCode::kInvalidArgument,
                  "operator 0 (WHILE): it calls subgraph ", options);
  }
}

// Each subgraph calls the next one twice.
TEST(Tflite, NamesMayRepeat) {
  std::string json = R"({version: 3, buffers: [{}], subgraphs: [)";
  for (int i = 0; i < 20000; ++i) absl::StrAppend(&json, i ? "," : "", "{name: \"f\"}");
  const auto lite = ReadTfliteBytes(TfliteOfText(json + "]}"));
  ASSERT_TRUE(lite.ok()) << lite.status();
  const auto meta = MetaGraphOfLite(*lite);
  ASSERT_TRUE(meta.ok()) << meta.status();
  // Tensors of one name are inputs and outputs of their own.
  const auto answers = RunTflite(TfliteOfText(R"({
    version: 3, buffers: [{}], operator_codes: [{builtin_code: "ADD"}],
    subgraphs: [{tensors: [{name: "a b", shape: [1]}, {name: "a b", shape: [1]},
                           {name: "a b", shape: [1]}, {shape: [1]}],
                 inputs: [0, 1], outputs: [2, 2, 3],
                 operators: [{inputs: [0, 1], outputs: [2]}, {inputs: [2, 1], outputs: [3]}]}]})"));
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->size(), 2u);
  EXPECT_TRUE(answers->contains("a b") && answers->contains("tensor_3"));
}

// ---- bytes

// A file with more kinds of tables than kBase has.
std::string Rich() {
  TfliteText text;
  const int x = text.Input("[1,4,4,2]", "INT8", "quantization: {scale: [0.5], zero_point: [3]}, ");
  const int w = text.Const<int8_t>("[2,1,1,2]", "INT8", {1, 2, 3, 4},
                                   "quantization: {scale: [0.5, 0.25], zero_point: [0, 0]}, ");
  const int b = text.Const<int32_t>("[2]", "INT32", {1, 2});
  const int y = text.Tensor("[1,4,4,2]", "INT8", "quantization: {scale: [1], zero_point: [0]}, ");
  text.Op("CONV_2D", {x, w, b}, {y},
          "Conv2DOptions: {stride_w: 1, stride_h: 1, fused_activation_function: \"RELU6\"}");
  const int f = text.Tensor("[1,4,4,2]");
  text.Op("DEQUANTIZE", {y}, {f}, "DequantizeOptions: {}");
  const int to = text.Ints({-1, 2}), r = text.Tensor("[16,2]");
  text.Op("RESHAPE", {f, to}, {r}, "ReshapeOptions: {new_shape: [-1, 2]}");
  const int names = text.Const<int32_t>("[1]", "STRING", {1, 12, 12});
  text.EndSubgraph({r, names});
  return text.Bytes(
      ", description: \"d\", metadata: [{name: \"m\", buffer: 1}], signature_defs: "
      "[{signature_key: "
      "\"s\", inputs: [{name: \"x\", tensor_index: 0}], outputs: [{name: \"y\", tensor_index: 6}, "
      "{name: \"n\", tensor_index: 7}]}]");
}

// What reads runs or is refused; nothing is a bug of ours.
void ExpectAnAnswer(const std::string& bytes) {
  const auto lite = ReadTfliteBytes(bytes);
  if (!lite.ok()) {
    EXPECT_TRUE(absl::IsInvalidArgument(lite.status()) || absl::IsUnimplemented(lite.status()))
        << lite.status();
    return;
  }
  const Status lowered = MetaGraphOfLite(*lite).status();
  EXPECT_FALSE(absl::IsInternal(lowered) || absl::IsUnknown(lowered)) << lowered;
}

TEST(TfliteBytes, EveryBeginningIsRefused) {
  for (const std::string& whole : {TfliteOfText(kBase), Rich()}) {
    ASSERT_TRUE(RunTflite(whole).ok()) << LowerTflite(whole);
    for (size_t n = 0; n < whole.size(); ++n) {
      // The parser writes from the end, where padding may be all that is lost.
      const auto lite = ReadTfliteBytes(whole.substr(0, n));
      EXPECT_FALSE(lite.ok() && n + 8 < whole.size()) << n;
    }
  }
}

TEST(TfliteBytes, EveryWordMayBeAnything) {
  const std::string whole = Rich();
  const uint32_t kWords[] = {0,      1,          2,          4,          0xff,      0x7fff,
                             0xffff, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff};
  for (size_t at = 0; at + 4 <= whole.size(); at += 2) {
    for (const uint32_t word : kWords) {
      std::string bytes = whole;
      std::memcpy(&bytes[at], &word, at % 4 == 0 ? 4 : 2);
      ExpectAnAnswer(bytes);
    }
  }
}

TEST(TfliteBytes, FlippedBitsRunOrAreRefused) {
  const std::string whole = Rich();
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    std::string bytes = whole;
    for (int k = 0; k < 2; ++k)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    const Status status = LowerTflite(bytes);
    EXPECT_FALSE(absl::IsInternal(status) || absl::IsUnknown(status)) << status;
  }
}

// Tables that share one vector, so that few bytes stand for many.
TEST(TfliteBytes, SharedVectorsAreNotCopiedWithoutEnd) {
  flatbuffers::FlatBufferBuilder b;
  const auto shape = b.CreateVector(std::vector<int32_t>(100000, 1));
  std::vector<flatbuffers::Offset<tflite::Tensor>> tensors;
  for (int i = 0; i < 20000; ++i) tensors.push_back(tflite::CreateTensor(b, shape));
  const auto all = b.CreateVector(tensors);
  const auto graph = tflite::CreateSubGraph(b, all);
  const auto graphs = b.CreateVector(&graph, 1);
  tflite::FinishModelBuffer(b, tflite::CreateModel(b, kTfliteVersion, 0, graphs));
  const std::string bytes(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
  const int64_t before = HeapLive();
  EXPECT_FALSE(ReadTfliteBytes(bytes).ok());
  EXPECT_LT(HeapLive() - before, int64_t{1} << 28);
}

// ---- the table of operands

TEST(TfliteOperands, EveryOperatorHasBounds) {
  int operators = 0;
  for (int i = 0; i < kNumOps; ++i) {
    const OpName op = OpName::OfNumber(i);
    if (!absl::StartsWith(op.text(), "tfl.") || op == OpName("tfl.no_value")) continue;
    ++operators;
    EXPECT_NE(FindOperandCounts(op), nullptr) << op.text();
  }
  EXPECT_GE(operators, 200);
}

// No operator's row looks at an input that is not there: whatever their number is, and whatever
// they are, the file is refused or runs.
TEST(TfliteOperands, EveryOperatorOfAnyInputsIsRefusedOrRuns) {
  for (int i = 0; i < kNumOps; ++i) {
    const OpName op = OpName::OfNumber(i);
    if (!absl::StartsWith(op.text(), "tfl.") ||
        LiteBuiltin(absl::AsciiStrToUpper(op.text().substr(4))) < 0) {
      continue;
    }
    const std::string code = absl::AsciiStrToUpper(op.text().substr(4));
    for (const absl::string_view type : {"FLOAT32", "INT8"}) {
      for (int inputs = 0; inputs <= 5; ++inputs) {
        for (int outputs = 0; outputs <= 2; ++outputs) {
          TfliteText text;
          const absl::string_view more =
              type == "INT8" ? "quantization: {scale: [0.5], zero_point: [0]}, " : "";
          std::vector<int> in, out;
          for (int k = 0; k < inputs; ++k) in.push_back(text.Input("[1,2,2,1]", type, more));
          for (int k = 0; k < outputs; ++k) out.push_back(text.Tensor("[1,2,2,1]", type, more));
          text.Op(code, in, out);
          const auto lite = ReadTfliteBytes(text.Bytes(out));
          ASSERT_TRUE(lite.ok()) << lite.status();
          const Status status = MetaGraphOfLite(*lite).status();
          EXPECT_FALSE(absl::IsInternal(status) || absl::IsUnknown(status)) << code << status;
        }
      }
    }
  }
}

}  // namespace
}  // namespace smelt
