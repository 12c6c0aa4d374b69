// What .tflite files may say and TensorFlow's ops may not: the answers are those that LiteRT gives.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/tflite_text.h"

namespace smelt {
namespace {

constexpr char kAbout7[] = "quantization: {scale: [0.5], zero_point: [7]}, ";

// The only answer of operator `code` to 0, 1, ... of the first input; others are constants.
template <typename T>
std::vector<T> Answer(TfliteText& text, int output, const Shape& shape) {
  Tensor x = *Tensor::Zeros(kDtypeOf<T>, shape);
  std::iota(x.data<T>(), x.data<T>() + x.num_elements(), T{0});
  const auto answers = RunTflite(text.Bytes({output}), {{"t0", x}});
  EXPECT_TRUE(answers.ok()) << answers.status();
  if (!answers.ok() || answers->size() != 1) return {};
  const Tensor& y = answers->begin()->second;
  return {y.data<T>(), y.data<T>() + y.num_elements()};
}

TEST(TfliteLowered, OneTensorJoined) {
  TfliteText text;
  const int x = text.Input("[1,3]"), y = text.Tensor("[1,3]");
  text.Op("CONCATENATION", {x}, {y}, "ConcatenationOptions: {axis: -1}");
  EXPECT_EQ(Answer<float>(text, y, Shape({1, 3})), (std::vector<float>{0, 1, 2}));
  TfliteText beyond;
  beyond.Op("CONCATENATION", {beyond.Input("[1,3]")}, {beyond.Tensor("[1,3]")},
            "ConcatenationOptions: {axis: 2}");
  EXPECT_TRUE(absl::IsInvalidArgument(RunTflite(beyond.Bytes({1})).status()));
}

TEST(TfliteLowered, BlocksOfOne) {
  for (const absl::string_view code : {"SPACE_TO_DEPTH", "DEPTH_TO_SPACE"}) {
    TfliteText text;
    const int x = text.Input("[1,2,1,2]"), y = text.Tensor("[1,2,1,2]");
    text.Op(code, {x}, {y},
            code == "SPACE_TO_DEPTH" ? "SpaceToDepthOptions: {block_size: 1}"
                                     : "DepthToSpaceOptions: {block_size: 1}");
    EXPECT_EQ(Answer<float>(text, y, Shape({1, 2, 1, 2})), (std::vector<float>{0, 1, 2, 3}));
  }
}

TEST(TfliteLowered, DepthwiseOfTwoStrides) {
  TfliteText text;
  const int x = text.Input("[1,3,4,2]"),
            w = text.Const<float>("[1,1,1,4]", "FLOAT32", {1, 10, 100, 1000}),
            b = text.Const<float>("[4]", "FLOAT32", {0, 0, 0, 1}), y = text.Tensor("[1,3,2,4]");
  text.Op("DEPTHWISE_CONV_2D", {x, w, b}, {y},
          "DepthwiseConv2DOptions: {stride_h: 1, stride_w: 2, depth_multiplier: 2}");
  std::vector<float> wanted;
  for (int row = 0; row < 3; ++row) {
    for (const int column : {0, 2}) {
      const auto first = static_cast<float>((row * 4 + column) * 2);
      wanted.insert(wanted.end(), {first, 10 * first, 100 * (first + 1), 1000 * (first + 1) + 1});
    }
  }
  EXPECT_EQ(Answer<float>(text, y, Shape({1, 3, 4, 2})), wanted);
}

// Room that is computed, here read from an input, is filled with the zero point.
TEST(TfliteLowered, RoomOfBlocksThatIsAnInput) {
  TfliteText text;
  const int x = text.Input("[1,2,1]", "INT8", kAbout7), room = text.Input("[1,2]", "INT32"),
            y = text.Tensor("[2,2,1]", "INT8", kAbout7);
  text.Op("SPACE_TO_BATCH_ND", {x, text.Ints({2}), room}, {y}, "SpaceToBatchNDOptions: {}");
  Tensor numbers = *Tensor::Zeros(Dtype::kInt8, Shape({1, 2, 1}));
  numbers.data<int8_t>()[1] = 1;
  Tensor pads = *Tensor::Zeros(Dtype::kInt32, Shape({1, 2}));
  pads.data<int32_t>()[0] = pads.data<int32_t>()[1] = 1;
  const auto answers = RunTflite(text.Bytes({y}), {{"t0", numbers}, {"t1", pads}});
  ASSERT_TRUE(answers.ok()) << answers.status();
  const int8_t* out = answers->begin()->second.data<int8_t>();
  EXPECT_EQ(std::vector<int8_t>(out, out + 4), (std::vector<int8_t>{7, 1, 0, 7}));
}

TEST(TfliteLowered, ScaledNumbersOnce) {
  TfliteText text;
  const int x = text.Input("[3]", "INT8", kAbout7), y = text.Tensor("[0]", "INT8", kAbout7),
            at = text.Tensor("[3]", "INT32");
  text.Op("UNIQUE", {x}, {y, at}, "UniqueOptions: {idx_out_type: \"INT32\"}");
  EXPECT_EQ(Answer<int8_t>(text, y, Shape({3})), (std::vector<int8_t>{0, 1, 2}));
}

// The last numbers beside vectors of 8 are divided in double, halves away from zero.
TEST(TfliteLowered, LastNumbersToInt16) {
  TfliteText text;
  const int x = text.Input("[9]"),
            y = text.Tensor("[9]", "INT16", "quantization: {scale: [0.25], zero_point: [0]}, ");
  text.Op("QUANTIZE", {x}, {y}, "QuantizeOptions: {}");
  Tensor halves = *Tensor::Zeros(Dtype::kFloat, Shape({9}));
  std::fill_n(halves.data<float>(), 9, 0.125f);
  const auto answers = RunTflite(text.Bytes({y}), {{"t0", halves}});
  ASSERT_TRUE(answers.ok()) << answers.status();
  const int16_t* out = answers->begin()->second.data<int16_t>();
  EXPECT_EQ(std::vector<int16_t>(out, out + 9), (std::vector<int16_t>{0, 0, 0, 0, 0, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace smelt
