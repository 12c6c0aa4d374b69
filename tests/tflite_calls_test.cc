// .tflite files of subgraphs that call each other twice: small files of more work than anybody
// waits for. Apart from tflite_test: they take long under sanitizers.
#include <gtest/gtest.h>

#include "tests/tflite_text.h"

namespace smelt {
namespace {

// A chain of subgraphs: each calls the next one `calls` times, one behind the other.
StatusOr<MetaGraph> ReadChain(int depth, int calls) {
  TfliteText text;
  for (int i = 0; i < depth; ++i) {
    int x = text.Input("[1]");
    const std::string options = absl::StrCat("CallOptions: {subgraph: ", i + 1, "}");
    for (int k = 0; k < calls; ++k) {
      const int y = text.Tensor("[1]");
      text.Op(i + 1 < depth ? "CALL" : "NEG", {x}, {y}, i + 1 < depth ? options : "");
      x = y;
    }
    text.EndSubgraph({x});
  }
  ASSIGN_OR_RETURN(const LiteModel lite, ReadTfliteBytes(text.Bytes()));
  return MetaGraphOfLite(lite);
}

TEST(TfliteCalls, ThatDoubleAreTooMany) {
  for (const int depth : {17, 64, 1000}) {
    const Status status = ReadChain(depth, 2).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "operators with those of the subgraphs"))
        << status;
  }
}

TEST(TfliteCalls, ThatAreManyRunInTime) {
  auto meta = ReadChain(13, 2);
  ASSERT_TRUE(meta.ok()) << meta.status();
  auto model = LoadedModel::Load(*std::move(meta), "");
  ASSERT_TRUE(model.ok()) << model.status();
  NamedTensors inputs = {{"t0", *Tensor::Zeros(Dtype::kFloat, Shape({1}))}};
  inputs["t0"].data<float>()[0] = 3;
  RunOptions options;
  options.timeout = absl::Seconds(60);
  const auto answers = (*model)->RunSignature("serving_default", inputs, options);
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->begin()->second.flat<float>()[0], 3);  // negated 8,192 times
}

}  // namespace
}  // namespace smelt
