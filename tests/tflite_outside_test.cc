// .tflite files whose constants lie behind the flatbuffer, as in those of 2 GiB and more.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/wire/tflite/tflite.h"
#include "tflite_generated.h"

namespace smelt {
namespace {

LiteBuffer BufferOf(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {*owner, owner};
}

LiteModel Small() {
  LiteModel model;
  model.buffers = {{},
                   BufferOf(std::string(20, 'a')),
                   BufferOf(std::string(5, 'b')),
                   BufferOf("1.5.0"),
                   BufferOf(std::string(20, 'a')),
                   {}};
  model.metadata = {{"min_runtime_version", 3}};
  LiteSubgraph& graph = model.subgraphs.emplace_back();
  graph.name = "main";
  for (uint32_t i = 0; i < 6; ++i) {
    LiteTensor& t = graph.tensors.emplace_back();
    t.name = absl::StrCat("t", i);
    t.type = Dtype::kInt8;
    t.buffer = i == 3 ? 0 : i;
    t.shape = {static_cast<int32_t>(model.buffers[t.buffer].bytes.size())};
  }
  graph.inputs = {0};
  graph.outputs = {5};
  for (const char* options : {"first", "", "the second one's"}) {
    LiteOperator& op = graph.operators.emplace_back();
    op.op = "Mine";
    op.custom = true;
    op.inputs = {0, 1};
    op.custom_options = options;
  }
  return model;
}

std::string Written(const LiteModel& model, bool outside, uint64_t most = kMostTfliteInside) {
  std::string bytes;
  const Status status = WriteTflite(
      model, outside,
      [&](absl::string_view piece) {
        absl::StrAppend(&bytes, piece);
        return OkStatus();
      },
      most);
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

TEST(TfliteOutside, ConstantsLieBehindTheFlatbufferAtMultiplesOf16) {
  const LiteModel model = Small();
  const std::string bytes = Written(model, false, 40);
  EXPECT_EQ(bytes, Written(model, true));
  const tflite::Model& file = *tflite::GetModel(bytes.data());
  int outside = 0;
  std::string location;
  for (const tflite::Buffer* b : *file.buffers()) {
    if (b->offset() == 0) continue;
    ++outside;
    EXPECT_EQ(b->data(), nullptr);
    EXPECT_EQ(b->offset() % 16, 0u);
    EXPECT_GT(b->offset(), 1u);
    EXPECT_LE(b->offset() + b->size(), bytes.size());
  }
  EXPECT_EQ(outside, 2);  // two of the three have the same bytes
  for (const tflite::Metadata* m : *file.metadata()) {
    const auto* data = file.buffers()->Get(m->buffer())->data();
    ASSERT_NE(data, nullptr) << m->name()->str();
    if (m->name()->str() != "buffer_location") continue;
    location.assign(data->begin(), data->end());
  }
  EXPECT_EQ(location, "outside flatbuffers");
  for (const tflite::Operator* op : *file.subgraphs()->Get(0)->operators()) {
    EXPECT_EQ(op->large_custom_options_offset() % 16, 0u);
  }
}

TEST(TfliteOutside, ItReadsAsTheSameModel) {
  const LiteModel model = Small();
  for (const bool outside : {false, true}) {
    const auto bytes = std::make_shared<const std::string>(Written(model, outside));
    const auto read = ReadTflite(*bytes, bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->subgraphs[0].tensors.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      const LiteTensor& t = read->subgraphs[0].tensors[i];
      EXPECT_EQ(read->buffers[t.buffer].bytes,
                model.buffers[model.subgraphs[0].tensors[i].buffer].bytes);
    }
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(read->subgraphs[0].operators[i].custom_options,
                model.subgraphs[0].operators[i].custom_options);
    }
    EXPECT_EQ(read->metadata.size(), outside ? 2u : 1u);
    // Written again it is the same; and of what lies inside nothing says that it does not.
    EXPECT_TRUE(Written(*read, outside) == *bytes);
    EXPECT_FALSE(absl::StrContains(Written(*read, false), "buffer_location"));
  }
}

TEST(TfliteShared, EqualShapesScalesAndZeroPointsAreStatedOnce) {
  LiteModel model;
  model.buffers = {{}};
  LiteSubgraph& graph = model.subgraphs.emplace_back();
  for (int i = 0; i < 3; ++i) {
    LiteTensor& t = graph.tensors.emplace_back();
    t.name = absl::StrCat("t", i);
    t.type = Dtype::kInt8;
    t.shape = {2, 3};
    t.quantization.scale = {0.5f, 0.25f * static_cast<float>(i + 1)};
    t.quantization.zero_point = {0, i == 2 ? 1 : 0};
    if (i == 2) t.shape = {3, 2}, t.quantization.dimension = 1;
  }
  const std::string bytes = Written(model, false);
  const auto& tensors = *tflite::GetModel(bytes.data())->subgraphs()->Get(0)->tensors();
  const auto zeros = [&](unsigned i) { return tensors.Get(i)->quantization()->zero_point(); };
  EXPECT_EQ(tensors.Get(0)->shape(), tensors.Get(1)->shape());
  EXPECT_NE(tensors.Get(0)->shape(), tensors.Get(2)->shape());
  EXPECT_EQ(zeros(0), zeros(1));
  EXPECT_EQ(zeros(2)->Get(1), 1);
  const auto owner = std::make_shared<const std::string>(bytes);
  const auto read = ReadTflite(*owner, owner);
  ASSERT_TRUE(read.ok()) << read.status();
  for (size_t i = 0; i < 3; ++i) {
    const LiteTensor &had = graph.tensors[i], &got = read->subgraphs[0].tensors[i];
    EXPECT_EQ(had.shape, got.shape);
    EXPECT_EQ(had.quantization.scale, got.quantization.scale);
    EXPECT_EQ(had.quantization.zero_point, got.quantization.zero_point);
  }
}

TEST(TfliteOutside, UpToTheThresholdItLiesInside) {
  const LiteModel model = Small();
  uint64_t sum = 0;
  // Equal bytes count once, each with its alignment; empty ones have one, too.
  for (const size_t i : {0, 1, 2, 3, 5}) sum += model.buffers[i].bytes.size() + 16;
  for (const LiteOperator& op : model.subgraphs[0].operators) sum += op.custom_options.size();
  EXPECT_EQ(Written(model, false, sum), Written(model, false));
  EXPECT_EQ(Written(model, false, sum - 1), Written(model, true));
}

TEST(TfliteOutside, WhatReachesBeyondTheFileIsRefused) {
  const std::string bytes = Written(Small(), true);
  const auto tail = absl::string_view("the second one's").size();
  for (size_t cut = 1; cut < tail + 16 + 5; ++cut) {
    const auto kept = std::make_shared<const std::string>(bytes.substr(0, bytes.size() - cut));
    EXPECT_EQ(ReadTflite(*kept, kept).status().code(), absl::StatusCode::kInvalidArgument) << cut;
  }
}

}  // namespace
}  // namespace smelt
