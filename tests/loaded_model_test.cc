// Signatures of loaded models.
#include "smelt/model/loaded_model.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "smelt/graph/text.h"
#include "smelt/model/made_up_requests.h"

namespace smelt {
namespace {

TensorInfo Dense(const std::string& name) {
  TensorInfo info;
  info.kind = TensorInfo::Kind::kDense;
  info.name = name;
  info.dtype = Dtype::kFloat;
  return info;
}

constexpr char kNegates[] = "x = Placeholder {dtype=float, shape=shape(?)}\ny = Neg(x) {T=float}\n";

std::unique_ptr<LoadedModel> Load(Signature signature, absl::string_view text = kNegates) {
  MetaGraph meta;
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  meta.graph = *std::move(graph);
  meta.signatures["s"] = std::move(signature);
  auto model = LoadedModel::Load(std::move(meta), "");
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// As models for evaluation have them, whose features are labels, too.
TEST(Signature, SeveralKeysOfOneTensorTakeOneValue) {
  Signature signature;
  signature.inputs = {{"a", Dense("x:0")}, {"b", Dense("x")}};
  signature.outputs = {{"p", Dense("y:0")}, {"q", Dense("y:0")}, {"r", Dense("x:0")}};
  const auto model = Load(signature);
  const auto out =
      model->RunSignature("s", {{"a", Tensor::Scalar<float>(2)}, {"b", Tensor::Scalar<float>(2)}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->at("p").scalar<float>(), -2);
  EXPECT_EQ(out->at("q").scalar<float>(), -2);
  EXPECT_EQ(out->at("r").scalar<float>(), 2);
  for (const Tensor& other : {Tensor::Scalar<float>(3), Tensor::Vector<float>({2.0f})}) {
    const Status status =
        model->RunSignature("s", {{"a", Tensor::Scalar<float>(2)}, {"b", other}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "inputs 'a' and 'b' of signature 's'"))
        << status;
  }
  const Status missing = model->RunSignature("s", {{"a", Tensor::Scalar<float>(2)}}).status();
  EXPECT_TRUE(absl::StrContains(missing.message(), "input 'b' of signature 's' is missing"))
      << missing;
}

// Whoever makes a request up does not know what a loop ends for.
TEST(MadeUpRequests, AnAnswerThatNeverComesIsNotWaitedFor) {
  Signature signature;
  signature.inputs = {{"x", Dense("x:0")}};
  signature.outputs = {{"y", Dense("y:0")}};
  const auto model = Load(signature,
                          "x = Placeholder {dtype=float, shape=shape(?)}\n"
                          "zero = Const {dtype=int32, value=int32[]{0}}\n"
                          "e = Enter(zero) {T=int32, frame_name=\"f\"}\n"
                          "most = Const {dtype=int32, value=int32[]{2147483647}}\n"
                          "em = Enter(most) {T=int32, frame_name=\"f\", is_constant=true}\n"
                          "one = Const {dtype=int32, value=int32[]{1}}\n"
                          "e1 = Enter(one) {T=int32, frame_name=\"f\", is_constant=true}\n"
                          "m = Merge(e, n) {T=int32, N=2}\n"
                          "g = LessEqual(m, em) {T=int32}\n"
                          "c = LoopCond(g)\n"
                          "s = Switch(m, c) {T=int32}\n"
                          "i = AddV2(s:1, e1) {T=int32}\n"
                          "n = NextIteration(i) {T=int32}\n"
                          "z = Exit(s) {T=int32}\n"
                          "f = Cast(z) {SrcT=int32, DstT=float}\n"
                          "y = AddV2(f, x) {T=float}\n");
  const Status status = MadeUpRequests(*model, 1, absl::Milliseconds(200)).Ask("s", 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "made up is not answered in 200ms")) << status;
}

// A default holds where nobody gives the tensor a value.
TEST(Signature, ADefaultGivesWayToTheValueOfAnotherKey) {
  Signature signature;
  signature.inputs = {{"a", Dense("x:0")}, {"b", Dense("x:0")}};
  signature.outputs = {{"y", Dense("y:0")}};
  signature.defaults["b"] = TensorValue::Of(Tensor::Scalar<float>(5));
  const auto model = Load(signature);
  const auto out = model->RunSignature("s", {{"a", Tensor::Scalar<float>(2)}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->at("y").scalar<float>(), -2);
}

}  // namespace
}  // namespace smelt
