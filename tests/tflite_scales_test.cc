// Quantized operators of .tflite files with scales next to nothing and next to infinity: their
// quotients are neither integers nor, at times, numbers. The sanitizers see what is made of these.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/tflite_text.h"

namespace smelt {
namespace {

TEST(TfliteScales, ScalesWithoutBounds) {
  struct {
    absl::string_view code, options;
    int inputs = 1;
  } const operators[] = {
      {"ABS", ""},
      {"SQRT", ""},
      {"RSQRT", ""},
      {"EXP", ""},
      {"LOG", ""},
      {"GELU", "GeluOptions: {}"},
      {"ELU", ""},
      {"RELU", ""},
      {"RELU6", ""},
      {"RELU_N1_TO_1", ""},
      {"LEAKY_RELU", "LeakyReluOptions: {alpha: 1e30}"},
      {"HARD_SWISH", ""},
      {"LOGISTIC", ""},
      {"TANH", ""},
      {"NEG", ""},
      {"QUANTIZE", ""},
      {"SOFTMAX", "SoftmaxOptions: {beta: 1e30}"},
      {"LOG_SOFTMAX", ""},
      {"L2_NORMALIZATION", "L2NormOptions: {}"},
      {"AVERAGE_POOL_2D",
       "Pool2DOptions: {stride_h: 1, stride_w: 1, filter_height: 1, "
       "filter_width: 2, fused_activation_function: \"RELU6\"}"},
      {"ADD", "AddOptions: {fused_activation_function: \"RELU6\"}", 2},
      {"SUB", "SubOptions: {}", 2},
      {"MUL", "MulOptions: {}", 2},
      {"DIV", "DivOptions: {}", 2},
      {"SQUARED_DIFFERENCE", "", 2},
      {"MAXIMUM", "", 2},
      {"LESS", "", 2},
      {"CONCATENATION", "ConcatenationOptions: {}", 2},
      {"PACK", "PackOptions: {values_count: 2}", 2},
      {"BATCH_MATMUL", "BatchMatMulOptions: {}", 2},
      {"FULLY_CONNECTED", "FullyConnectedOptions: {}", 2},
      {"CONV_2D", "Conv2DOptions: {stride_h: 1, stride_w: 1}", 2},
      {"DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions: {stride_h: 1, stride_w: 1}", 2},
      {"PRELU", "", 2}};
  const absl::string_view scales[] = {"0", "1e-45", "1e-30", "0.5", "1e30", "3e38"};
  int runs = 0;
  for (const auto& [code, options, count] : operators) {
    for (const auto& [type, dtype] :
         {std::pair("INT8", Dtype::kInt8), {"UINT8", Dtype::kUint8}, {"INT16", Dtype::kInt16}}) {
      for (const absl::string_view in : scales) {
        for (const absl::string_view out : scales) {
          TfliteText text;
          const auto scaled = [](absl::string_view scale) {
            return absl::StrCat("quantization: {scale: [", scale, "], zero_point: [0]}, ");
          };
          std::vector<int> inputs = {text.Input("[1,1,2,1]", type, scaled(in))};
          if (count == 2) inputs.push_back(text.Input("[1,1,1,1]", type, scaled(out)));
          const int y = text.Tensor("[1,1,2,1]", code == "LESS" ? "BOOL" : type, scaled(out));
          text.Op(code, inputs, {y}, options);
          NamedTensors given;
          for (const int i : inputs) {
            auto x = Tensor::Zeros(dtype, Shape({1, 1, i == inputs[0] ? 2 : 1, 1}));
            ASSERT_TRUE(x.ok());
            std::memset(x->raw(), 0x7b, 1);
            std::memset(static_cast<char*>(x->raw()) + x->num_elements() - 1, 0x91, 1);
            given[absl::StrCat("t", i)] = *x;
          }
          const auto answers = RunTflite(text.Bytes({y}), given);
          if (!answers.ok()) {
            EXPECT_TRUE(absl::IsInvalidArgument(answers.status()) ||
                        absl::IsUnimplemented(answers.status()) ||
                        absl::IsNotFound(answers.status()))
                << code << "\n"
                << answers.status();
          }
          runs += answers.ok() ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(runs, 1000);
}

// What has the scale 0 is 0, whatever its steps; a result that has it is an error.
TEST(TfliteScales, ZeroScales) {
  for (const bool of_result : {false, true}) {
    TfliteText text;
    const int x = text.Input("[3]", "INT16", "quantization: {scale: [0.5], zero_point: [0]}, ");
    const int w =
        text.Const<int16_t>("[]", "INT16", {7}, "quantization: {scale: [0], zero_point: [0]}, ");
    const int y = text.Tensor("[3]", "INT16",
                              of_result ? "quantization: {scale: [0], zero_point: [0]}, "
                                        : "quantization: {scale: [2], zero_point: [0]}, ");
    text.Op("MUL", {x, w}, {y}, "MulOptions: {}");
    const int16_t numbers[] = {-1000, 0, 32767};
    const auto answers =
        RunTflite(text.Bytes({y}),
                  {{absl::StrCat("t", x), Tensor::Vector(std::span<const int16_t>(numbers))}});
    if (of_result) {
      EXPECT_TRUE(absl::StrContains(answers.status().message(), "its output has no scale"))
          << answers.status();
      continue;
    }
    ASSERT_TRUE(answers.ok()) << answers.status();
    for (const int16_t v : answers->begin()->second.flat<int16_t>()) EXPECT_EQ(v, 0);
  }
}

// The second operand is made anew in each run, where that of the last run lay.
TEST(TfliteScales, ProductsOfComputedNumbers) {
  TfliteText text;
  const absl::string_view one = "quantization: {scale: [1], zero_point: [0]}, ";
  const int x = text.Input("[1,2]", "INT8", one);
  const int w = text.Tensor("[1,2]", "INT8", one), y = text.Tensor("[1,1]", "INT8", one);
  text.Op("ADD", {x, x}, {w}, "AddOptions: {}");
  text.Op("FULLY_CONNECTED", {x, w}, {y}, "FullyConnectedOptions: {}");
  auto lite = ReadTfliteBytes(text.Bytes({y}));
  ASSERT_TRUE(lite.ok()) << lite.status();
  auto meta = MetaGraphOfLite(*lite);
  ASSERT_TRUE(meta.ok()) << meta.status();
  auto model = LoadedModel::Load(*std::move(meta), "");
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int8_t first : {1, 3, 5}) {
    NamedTensors inputs = {{"t0", *Tensor::Zeros(Dtype::kInt8, Shape({1, 2}))}};
    inputs["t0"].data<int8_t>()[0] = first;
    const auto answers = (*model)->RunSignature("serving_default", inputs, RunOptions());
    ASSERT_TRUE(answers.ok()) << answers.status();
    EXPECT_EQ(answers->begin()->second.flat<int8_t>()[0], 2 * first * first);
  }
}

}  // namespace
}  // namespace smelt
