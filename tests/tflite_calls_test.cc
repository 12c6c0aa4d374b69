// A .tflite file of subgraphs that call each other twice: a small file of more work than anybody
// waits for. Apart from tflite_test: it takes minutes under sanitizers.
#include <gtest/gtest.h>

#include "tests/tflite_text.h"

namespace smelt {
namespace {

TEST(TfliteCalls, ThatDoubleEndInTime) {
  TfliteText text;
  constexpr int kDepth = 64;
  for (int i = 0; i < kDepth; ++i) {
    const int x = text.Input("[1]"), y = text.Tensor("[1]"), z = text.Tensor("[1]");
    const std::string options = absl::StrCat("CallOptions: {subgraph: ", i + 1, "}");
    if (i + 1 < kDepth) {
      text.Op("CALL", {x}, {y}, options);
      text.Op("CALL", {y}, {z}, options);
    } else {
      text.Op("NEG", {x}, {y});
      text.Op("NEG", {y}, {z});
    }
    text.EndSubgraph({z});
  }
  const auto lite = ReadTfliteBytes(text.Bytes());
  ASSERT_TRUE(lite.ok()) << lite.status();
  auto meta = MetaGraphOfLite(*lite);
  ASSERT_TRUE(meta.ok()) << meta.status();
  auto model = LoadedModel::Load(*std::move(meta), "");
  ASSERT_TRUE(model.ok()) << model.status();
  RunOptions options;
  options.timeout = absl::Milliseconds(300);
  const NamedTensors inputs = {{"t0", *Tensor::Zeros(Dtype::kFloat, Shape({1}))}};
  const Status status = (*model)->RunSignature("serving_default", inputs, options).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace smelt
