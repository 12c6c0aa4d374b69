// Operators of .tflite files at the ends of what they take: shapes without elements whose other
// sizes are as large as sizes can be, windows of nothing, sums beyond their integers, steps that
// are rounded thousands of times. Each is an answer or an error, and soon.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/tflite_text.h"

namespace smelt {
namespace {

constexpr char kHalves[] = "quantization: {scale: [0.5], zero_point: [0]}, ";
constexpr char kMost[] = "2147483647";

template <typename T>
Tensor Filled(const Shape& shape, T value) {
  Tensor t = *Tensor::Zeros(kDtypeOf<T>, shape);
  std::ranges::fill(t.flat<T>(), value);
  return t;
}

// Steps of 1/1024 pixels are rounded: the last of 4,001 would begin behind 3,000 pixels.
template <typename T>
void ExpectResizedEvenly(absl::string_view type) {
  for (const char* options : {"{}", "{half_pixel_centers: true}", "{align_corners: true}"}) {
    TfliteText text;
    const int x = text.Input("[1,3000,2,1]", type, kHalves), size = text.Ints({4001, 2}),
              y = text.Tensor("[1,4001,2,1]", type, kHalves);
    text.Op("RESIZE_BILINEAR", {x, size}, {y}, absl::StrCat("ResizeBilinearOptions: ", options));
    const auto answers =
        RunTflite(text.Bytes({y}), {{"t0", Filled<T>(Shape({1, 3000, 2, 1}), T{99})}});
    ASSERT_TRUE(answers.ok()) << answers.status();
    for (const T v : answers->begin()->second.template flat<T>()) ASSERT_EQ(v, 99) << options;
  }
}

TEST(TfliteExtremes, ResizedImagesEndWithTheirLastPixel) {
  ExpectResizedEvenly<int8_t>("INT8");
  ExpectResizedEvenly<int16_t>("INT16");
  ExpectResizedEvenly<uint8_t>("UINT8");
}

TEST(TfliteExtremes, NothingInManyRowsIsSoonDone) {
  const absl::Time start = absl::Now();
  for (const absl::string_view type : {"INT8", "UINT8", "INT16"}) {
    const std::string empty = absl::StrCat("[", kMost, ",1000,2,0]");
    for (const char* code : {"AVERAGE_POOL_2D", "MAX_POOL_2D"}) {
      TfliteText text;
      const int x = text.Input(empty, type, kHalves), y = text.Tensor(empty, type, kHalves);
      text.Op(code, {x}, {y},
              "Pool2DOptions: {stride_h: 1, stride_w: 1, filter_height: 1, filter_width: 1}");
      EXPECT_TRUE(RunTflite(text.Bytes({y})).ok()) << code << type;
    }
    TfliteText resize;
    const int x = resize.Input(empty, type, kHalves), size = resize.Ints({1000000, 1000000}),
              y = resize.Tensor(empty, type, kHalves);
    resize.Op("RESIZE_BILINEAR", {x, size}, {y}, "ResizeBilinearOptions: {}");
    EXPECT_TRUE(RunTflite(resize.Bytes({y})).ok()) << type;
    TfliteText depthwise;
    const int image = depthwise.Input(empty, type, kHalves),
              filter = depthwise.Input("[1,1,1,0]", type == "UINT8" ? type : "INT8", kHalves),
              out = depthwise.Tensor(empty, type, kHalves);
    depthwise.Op("DEPTHWISE_CONV_2D", {image, filter}, {out},
                 "DepthwiseConv2DOptions: {stride_h: 1, stride_w: 1, depth_multiplier: 1}");
    EXPECT_TRUE(RunTflite(depthwise.Bytes({out})).ok()) << type;
    TfliteText transposed;
    const int to = transposed.Ints({2147483647, 1000, 2, 0}),
              weights = transposed.Input("[0,1,1,0]", type == "UINT8" ? type : "INT8", kHalves),
              from = transposed.Input(empty, type, kHalves),
              made = transposed.Tensor(empty, type, kHalves);
    transposed.Op("TRANSPOSE_CONV", {to, weights, from}, {made},
                  "TransposeConvOptions: {stride_h: 1, stride_w: 1}");
    EXPECT_TRUE(RunTflite(transposed.Bytes({made})).ok()) << type;
    TfliteText mean;
    const int all = mean.Input("[0,2147483647,2147483647,2147483647]", type, kHalves),
              axes = mean.Ints({1, 2, 3}), none = mean.Tensor("[0]", type, kHalves);
    mean.Op("MEAN", {all, axes}, {none}, "ReducerOptions: {}");
    EXPECT_TRUE(RunTflite(mean.Bytes({none})).ok()) << type;
  }
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

// A sequence of 2^31 - 1 steps, each of no rows or of rows of nothing: the deadline ends it.
TEST(TfliteExtremes, LongSequencesOfNothingEnd) {
  for (const int rows : {0, 1}) {
    TfliteText text;
    const int x = text.Input(absl::StrCat("[", kMost, ",", rows, ",0]")),
              w = text.Input(rows == 0 ? "[3,0]" : "[0,0]"),
              r = text.Input(rows == 0 ? "[3,3]" : "[0,0]"),
              b = text.Input(rows == 0 ? "[3]" : "[0]"),
              h = text.Tensor(absl::StrCat("[", rows, ",", rows == 0 ? 3 : 0, "]"), "FLOAT32",
                              "is_variable: true, "),
              y = text.Tensor(absl::StrCat("[", kMost, ",", rows, ",", rows == 0 ? 3 : 0, "]"));
    text.Op("UNIDIRECTIONAL_SEQUENCE_RNN", {x, w, r, b, h}, {y},
            "SequenceRNNOptions: {time_major: true}");
    const absl::Time start = absl::Now();
    const auto lite = ReadTfliteBytes(text.Bytes({y}));
    ASSERT_TRUE(lite.ok()) << lite.status();
    auto meta = MetaGraphOfLite(*lite);
    ASSERT_TRUE(meta.ok()) << meta.status();
    const auto model = LoadedModel::Load(*std::move(meta), "");
    ASSERT_TRUE(model.ok()) << model.status();
    NamedTensors inputs;
    for (const auto& [key, slot] :
         LoadedModel::Slots((*(*model)->FindSignature("serving_default"))->inputs)) {
      inputs[key] = *Tensor::Zeros(slot.dtype, slot.shape.ToShape());
    }
    RunOptions options;
    options.timeout = absl::Seconds(1);
    const Status status = (*model)->RunSignature("serving_default", inputs, options).status();
    EXPECT_TRUE(status.ok() || absl::IsDeadlineExceeded(status) || absl::IsInvalidArgument(status))
        << status;
    EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  }
}

TEST(TfliteExtremes, WindowsOfNothingAndOverNothing) {
  for (const absl::string_view type : {"INT8", "INT16", "UINT8"}) {
    const struct {
      absl::string_view image, filter;
    } kCases[] = {
        {"[1,4,4,0]", "[1,2,2,1]"}, {"[1,4,4,1]", "[1,0,1,1]"}, {"[1,4,4,1]", "[1,1,0,1]"}};
    for (const auto& c : kCases) {
      for (const bool depthwise : {false, true}) {
        TfliteText text;
        const int x = text.Input(c.image, type, kHalves),
                  w = text.Input(c.filter, type == "UINT8" ? type : "INT8", kHalves),
                  y = text.Tensor("[1,4,4,1]", type, kHalves);
        text.Op(depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", {x, w}, {y},
                depthwise
                    ? "DepthwiseConv2DOptions: {stride_h: 1, stride_w: 1, depth_multiplier: 1}"
                    : "Conv2DOptions: {stride_h: 1, stride_w: 1}");
        const Status status = RunTflite(text.Bytes({y})).status();
        EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.image << c.filter << type << status;
      }
    }
  }
}

Tensor Sentence(int words) {
  std::string text = "a";
  for (int i = 1; i < words; ++i) text += " a";
  return Tensor::Scalar(text);
}

StatusOr<NamedTensors> SkipGrams(int words, int size, int skip) {
  TfliteText text;
  const int x = text.Input("[]", "STRING"), y = text.Tensor("[1]", "STRING");
  text.Op("SKIP_GRAM", {x}, {y},
          absl::StrCat("SkipGramOptions: {ngram_size: ", size, ", max_skip_size: ", skip, "}"));
  return RunTflite(text.Bytes({y}), {{"t0", Sentence(words)}});
}

// Which of 41 words is left out: of the groups that are begun, 2^40 cannot be ended.
TEST(TfliteExtremes, GroupsOfWordsThatCannotBeEnded) {
  const auto answers = SkipGrams(41, 40, 41);
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->begin()->second.num_elements(), 41);
}

TEST(TfliteExtremes, LongGroupsOfWords) {
  const auto answers = SkipGrams(300'000, 300'000, 0);
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->begin()->second.num_elements(), 1);
}

// Sums beyond their integers wrap around: the sanitizers see what is not defined.
TEST(TfliteExtremes, SumsWrapAround) {
  constexpr char kHigh[] = "quantization: {scale: [0.5], zero_point: [255]}, ";
  TfliteText window;
  const int all = window.Input("[1,182,182,1]", "UINT8", kHigh),
            taps = window.Const<uint8_t>("[1,182,182,1]", "UINT8",
                                         std::vector<uint8_t>(182 * 182, 255), kHalves),
            sum = window.Tensor("[1,1,1,1]", "UINT8", kHalves);
  window.Op("DEPTHWISE_CONV_2D", {all, taps}, {sum},
            "DepthwiseConv2DOptions: {padding: VALID, stride_h: 1, stride_w: 1, "
            "depth_multiplier: 1}");
  EXPECT_TRUE(RunTflite(window.Bytes({sum})).ok());

  for (const char* code : {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}) {
    const bool dense = std::string(code) == "FULLY_CONNECTED";
    TfliteText layer;
    const int image = layer.Input(dense ? "[1,1]" : "[1,1,1,1]", "INT16", kHalves),
              weights = layer.Const<int8_t>(dense ? "[1,1]" : "[1,1,1,1]", "INT8", {1}, kHalves),
              bias = layer.Const<int64_t>("[1]", "INT64", {std::numeric_limits<int64_t>::max()}),
              out = layer.Tensor(dense ? "[1,1]" : "[1,1,1,1]", "INT16", kHalves);
    layer.Op(code, {image, weights, bias}, {out},
             dense ? "FullyConnectedOptions: {}"
             : code[0] == 'D'
                 ? "DepthwiseConv2DOptions: {stride_h: 1, stride_w: 1, depth_multiplier: 1}"
                 : "Conv2DOptions: {stride_h: 1, stride_w: 1}");
    const Shape one = dense ? Shape({1, 1}) : Shape({1, 1, 1, 1});
    EXPECT_TRUE(RunTflite(layer.Bytes({out}), {{"t0", Filled<int16_t>(one, 5)}}).ok()) << code;
  }
}

TEST(TfliteExtremes, GapsBetweenElementsAreNoLess) {
  TfliteText text;
  const int x = text.Input("[4]"), init = text.Input("[]"), y = text.Tensor("[4]");
  text.Op("STABLEHLO_REDUCE_WINDOW", {x, init}, {y},
          "StablehloReduceWindowOptions: {window_dimensions: [1], body_subgraph_index: 1, "
          "base_dilations: [-9223372036854775808]}");
  text.EndSubgraph({y});
  const int a = text.Input("[]"), b = text.Input("[]"), sum = text.Tensor("[]");
  text.Op("ADD", {a, b}, {sum});
  text.EndSubgraph({sum});
  const Status status = RunTflite(text.Bytes()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "base_dilations")) << status;
}

// More exponentials than 32 bits can sum: each share is less than a step.
TEST(TfliteExtremes, SharesOfManyNumbers) {
  TfliteText text;
  const int x = text.Input("[1,70000]", "INT16", kHalves),
            y = text.Tensor("[1,70000]", "INT16",
                            "quantization: {scale: [0.000030517578125], zero_point: [0]}, ");
  text.Op("SOFTMAX", {x}, {y}, "SoftmaxOptions: {beta: 1}");
  const auto answers = RunTflite(text.Bytes({y}));
  ASSERT_TRUE(answers.ok()) << answers.status();
  for (const int16_t v : answers->begin()->second.flat<int16_t>()) ASSERT_LE(v, 1);
}

// As TensorFlow's converter writes layers that were trained with FakeQuant nodes.
TEST(TfliteExtremes, RoundedWeightsWithoutAShape) {
  TfliteText text;
  const int x = text.Input("[1,2]"), w = text.Const<float>("[2,2]", "FLOAT32", {1, 2, 3, 4.2f}),
            rounded = text.Tensor("[]", "INT8", kHalves), again = text.Tensor("[]"),
            y = text.Tensor("[1,2]");
  text.Op("QUANTIZE", {w}, {rounded});
  text.Op("DEQUANTIZE", {rounded}, {again});
  text.Op("FULLY_CONNECTED", {x, again}, {y}, "FullyConnectedOptions: {}");
  const auto answers = RunTflite(text.Bytes({y}), {{"t0", Filled<float>(Shape({1, 2}), 1)}});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->begin()->second.flat<float>()[0], 3);
  EXPECT_EQ(answers->begin()->second.flat<float>()[1], 7);
}

// As `--quantize dynamic` writes transposed convolutions.
TEST(TfliteExtremes, TransposedConvolutionsOfFloatsAndInt8) {
  TfliteText text;
  const int size = text.Ints({1, 1, 2, 1}),
            w = text.Const<int8_t>("[1,1,2,1]", "INT8", {6, -4}, kHalves),
            x = text.Input("[1,1,1,1]"), bias = text.Const<float>("[1]", "FLOAT32", {1}),
            y = text.Tensor("[1,1,2,1]");
  text.Op("TRANSPOSE_CONV", {size, w, x, bias}, {y},
          "TransposeConvOptions: {padding: VALID, stride_h: 1, stride_w: 1}");
  const auto answers = RunTflite(text.Bytes({y}), {{"t2", Filled<float>(Shape({1, 1, 1, 1}), 2)}});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_NEAR(answers->begin()->second.flat<float>()[0], 7, 1e-5);
  EXPECT_NEAR(answers->begin()->second.flat<float>()[1], -3, 1e-5);
}

// What a layer has packed of weights is not taken for others that lie where they did.
TEST(TfliteExtremes, WeightsThatAreComputedAnew) {
  TfliteText text;
  const int x = text.Input("[1,2]", "INT8", kHalves), w = text.Input("[1,2]", "INT8", kHalves),
            size = text.Tensor("[1,2]", "INT8", kHalves), y = text.Tensor("[1,1]", "INT8", kHalves);
  text.Op("ABS", {w}, {size});
  text.Op("FULLY_CONNECTED", {x, size}, {y}, "FullyConnectedOptions: {}");
  const auto lite = ReadTfliteBytes(text.Bytes({y}));
  ASSERT_TRUE(lite.ok()) << lite.status();
  auto meta = MetaGraphOfLite(*lite);
  ASSERT_TRUE(meta.ok()) << meta.status();
  const auto model = LoadedModel::Load(*std::move(meta), "");
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int8_t weight : {2, -6, 4, 8}) {
    const auto answers = (*model)->RunSignature(
        "serving_default",
        {{"t0", Filled<int8_t>(Shape({1, 2}), 4)}, {"t1", Filled<int8_t>(Shape({1, 2}), weight)}},
        {});
    ASSERT_TRUE(answers.ok()) << answers.status();
    // 2 * 2.0 * weight / 2, in steps of 0.5.
    EXPECT_EQ(answers->begin()->second.flat<int8_t>()[0], 4 * std::abs(weight));
  }
}

}  // namespace
}  // namespace smelt
