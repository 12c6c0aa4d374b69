// .tflite files with weights of 4 bits and scales of blocks, sound and not.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "tests/tflite_text.h"

namespace smelt {
namespace {

struct Weights {
  absl::string_view op = "FULLY_CONNECTED", options = "FullyConnectedOptions: {}";
  absl::string_view input = "[1,4]", type = "INT4", shape = "[2,4]";
  std::vector<uint8_t> bytes = {0x21, 0x43, 0xfe, 0x87};  // 1 2 3 4, -2 -1 7 -8
  absl::string_view quantization = "scale: [0.5, 0.25], zero_point: [0, 0]";
};

// An operator on an input of ones, or of the indices 0, and these weights; the first tensor is the
// input, the second holds scales of blocks, the third is the weights.
struct Blocks {
  absl::string_view shape = "[2,2]", type = "FLOAT16";
  std::vector<uint16_t> halves = {0x3c00, 0x3800, 0x3400, 0x4000};  // 1 0.5, 0.25 2
};

StatusOr<std::vector<float>> Answer(const Weights& w, const Blocks& blocks = {}) {
  TfliteText text;
  const bool ids = w.op == "EMBEDDING_LOOKUP";
  const bool dequantize = w.op == "DEQUANTIZE";
  const int x = text.Input(w.input, ids ? "INT32" : "FLOAT32");
  text.Const(blocks.shape, blocks.type, blocks.halves);
  const int weights =
      text.Const(w.shape, w.type, w.bytes, absl::StrCat("quantization: {", w.quantization, "}, "));
  const int y = text.Tensor("[1,2]");
  text.Op(w.op, dequantize ? std::vector{weights} : std::vector{x, weights}, {y}, w.options);
  NamedTensors inputs;
  if (!ids) {
    ASSIGN_OR_RETURN(inputs["t0"], Tensor::Zeros(Dtype::kFloat, Shape({1, 4})));
    for (float& v : inputs["t0"].flat<float>()) v = 1;
  }
  ASSIGN_OR_RETURN(const NamedTensors answers, RunTflite(text.Bytes({y}), inputs));
  EXPECT_EQ(answers.size(), 1u);
  const auto values = answers.begin()->second.flat<float>();
  return std::vector<float>(values.begin(), values.end());
}

constexpr absl::string_view kOfBlocks =
    "details_type: \"BlockwiseQuantization\", details: {scales: 1, zero_points: -1, block_size: 2}";

Weights InBlocks(absl::string_view quantization = kOfBlocks) {
  return {.quantization = quantization};
}
Weights Table(Weights w) {
  w.op = "EMBEDDING_LOOKUP", w.options = "", w.input = "[1]";
  return w;
}

void ExpectNear(const StatusOr<std::vector<float>>& got, const std::vector<float>& wanted) {
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR((*got)[i], wanted[i], 1e-5);
}

TEST(TfliteBlocks, SoundFilesAnswer) {
  ExpectNear(Answer({}), {5, -1});
  ExpectNear(Answer(InBlocks()), {1 * 3 + 0.5 * 7, 0.25 * -3 + 2 * -1});
  ExpectNear(Answer(Table({})), {0.5, 1, 1.5, 2});
  ExpectNear(Answer(Table(InBlocks())), {1, 2, 1.5, 2});
}

TEST(TfliteBlocks, ARowOfOddSizeEndsWithinAByte) {
  ExpectNear(Answer(Table({.shape = "[1,3]",
                           .bytes = {0x21, 0x03},
                           .quantization = "scale: [0.5], zero_point: [0]"})),
             {0.5, 1, 1.5});
}

// A file that says nothing of zero points has 0 there, as if it meant the first tensor.
TEST(TfliteBlocks, ZeroPointsThatAreNotStated) {
  ExpectNear(Answer(InBlocks("details_type: \"BlockwiseQuantization\", details: {scales: 1, "
                             "block_size: 2}")),
             {6.5, -2.75});
}

void ExpectRefused(const StatusOr<std::vector<float>>& got, absl::string_view why) {
  ASSERT_FALSE(got.ok()) << why;
  EXPECT_TRUE(absl::IsInvalidArgument(got.status()) || absl::IsUnimplemented(got.status()) ||
              absl::IsNotFound(got.status()))
      << got.status();
  EXPECT_TRUE(absl::StrContains(got.status().message(), why)) << got.status() << "\nnot: " << why;
}

TEST(TfliteBlocks, BuffersOfOtherSizes) {
  for (const size_t size : {0, 1, 3, 5, 8}) {
    Weights w;
    w.bytes.resize(size, 0x11);
    for (const bool table : {false, true}) {
      const auto got = Answer(table ? Table(w) : w);
      EXPECT_FALSE(got.ok()) << size;
      EXPECT_TRUE(absl::IsInvalidArgument(got.status())) << got.status();
    }
  }
}

std::string BlocksOf(int64_t scales, int64_t size, int64_t zeros = -1) {
  return absl::StrCat("details_type: \"BlockwiseQuantization\", details: {scales: ", scales,
                      ", zero_points: ", zeros, ", block_size: ", size, "}");
}

TEST(TfliteBlocks, BlocksThatAreNone) {
  for (const bool table : {false, true}) {
    const auto of = [&](absl::string_view quantization, const Blocks& blocks = {}) {
      return Answer(table ? Table(InBlocks(quantization)) : InBlocks(quantization), blocks);
    };
    for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{INT32_MIN}}) {
      ExpectRefused(of(BlocksOf(1, size)), absl::StrCat("blocks of ", size));
    }
    for (const int64_t size : {int64_t{3}, int64_t{8}, int64_t{INT32_MAX}}) {
      ExpectRefused(of(BlocksOf(1, size)), absl::StrCat("has no blocks of ", size));
    }
    ExpectRefused(of(BlocksOf(1, 1)), "there are 4 scales for 8 blocks");
    ExpectRefused(of(BlocksOf(1, 4)), "there are 4 scales for 2 blocks");
    for (const int64_t index : {int64_t{-1}, int64_t{4}, int64_t{INT32_MAX}, int64_t{INT32_MIN}}) {
      ExpectRefused(of(BlocksOf(index, 2)), absl::StrCat("scales of tensor ", index));
    }
    // The input, the weights themselves and the output hold no scales.
    for (const int index : {0, 2, 3}) {
      ExpectRefused(of(BlocksOf(index, 2)), "no constant of float16");
    }
    const std::string sound(kOfBlocks);
    ExpectRefused(of(sound, {.shape = "[1,2]", .halves = {0, 0}}), "2 scales for 4 blocks");
    ExpectRefused(of(sound, {.shape = "[2,2]", .type = "INT16"}), "no constant of float16");
    EXPECT_FALSE(of(sound, {.halves = {0x3c00}}).ok());
    EXPECT_FALSE(of(sound, {.halves = {}}).ok());
    for (const uint16_t bits : {0x7c00, 0x7e00, 0xbc00}) {  // infinity, NaN, -1
      ExpectRefused(of(sound, {.halves = {0x3c00, bits, 0x3c00, 0x3c00}}), "has the scale");
    }
    ExpectRefused(of(BlocksOf(1, 2, 4)), "zero points of 4 among 4 tensors");
    ExpectRefused(of(BlocksOf(1, 2, 1)), "are no constant integers");
    ExpectRefused(of(BlocksOf(1, 2, 2)), "zero points other than 0");
  }
}

TEST(TfliteBlocks, OperatorsThatReadNoBlocks) {
  Weights w = InBlocks();
  w.op = "DEQUANTIZE", w.options = "";
  ExpectRefused(Answer(w), "scales of blocks");
  w = InBlocks();
  w.type = "FLOAT32", w.bytes.resize(32);
  ExpectRefused(Answer(w), "scales of blocks");
}

TEST(TfliteBlocks, EmbeddingsOfOtherRows) {
  ExpectRefused(Answer(Table({.shape = "[2,4]",
                              .quantization = "scale: [1,1,1,1], zero_point: [0,0,0,0], "
                                              "quantized_dimension: 1"})),
                "scales are not of rows");
  ExpectRefused(
      Answer(Table({.shape = "[0,4]", .bytes = {}, .quantization = "scale: [1], zero_point: [0]"})),
      "");
}

}  // namespace
}  // namespace smelt
