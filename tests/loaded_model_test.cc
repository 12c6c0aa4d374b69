// Signatures of loaded models.
#include "smelt/model/loaded_model.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "smelt/graph/text.h"

namespace smelt {
namespace {

TensorInfo Dense(const std::string& name) {
  TensorInfo info;
  info.kind = TensorInfo::Kind::kDense;
  info.name = name;
  info.dtype = Dtype::kFloat;
  return info;
}

std::unique_ptr<LoadedModel> Load(Signature signature) {
  MetaGraph meta;
  auto graph = ParseGraph("x = Placeholder {dtype=float, shape=shape(?)}\ny = Neg(x) {T=float}\n");
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
