// .tflite files from text, and what happens to them, for tests: a file is the schema's JSON, so
// that it may say whatever a file can say.
#ifndef SMELT_TESTS_TFLITE_TEXT_H_
#define SMELT_TESTS_TFLITE_TEXT_H_

#include <flatbuffers/idl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "smelt/base/heap.h"
#include "smelt/lite/lite_file.h"
#include "smelt/model/loaded_model.h"
#include "tflite_bfbs_generated.h"

namespace smelt {

// Not thread safe: the schema is parsed once.
inline std::string TfliteOfText(const std::string& json) {
  static auto* parser = [] {
    auto* p = new flatbuffers::Parser();
    EXPECT_TRUE(
        p->Deserialize(tflite::ModelBinarySchema::data(), tflite::ModelBinarySchema::size()));
    return p;
  }();
  parser->builder_.Clear();
  EXPECT_TRUE(parser->Parse(json.c_str())) << parser->error_ << "\n" << json;
  return std::string(reinterpret_cast<const char*>(parser->builder_.GetBufferPointer()),
                     parser->builder_.GetSize());
}

// Writes that text, tensor by tensor and operator by operator.
class TfliteText {
 public:
  // `more`: other fields of the tensor, "quantization: {scale: [1]}, ".
  int Tensor(absl::string_view shape, absl::string_view type = "FLOAT32",
             absl::string_view more = "") {
    tensors_.push_back(absl::StrCat("{", more, "name: \"t", tensors_.size(), "\", shape: ", shape,
                                    ", type: \"", type, "\", has_rank: true}"));
    return static_cast<int>(tensors_.size()) - 1;
  }
  int Input(absl::string_view shape, absl::string_view type = "FLOAT32",
            absl::string_view more = "") {
    inputs_.push_back(Tensor(shape, type, more));
    return inputs_.back();
  }
  template <typename T>
  int Const(absl::string_view shape, absl::string_view type, std::vector<T> values,
            absl::string_view more = "") {
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    const std::vector<int> data(bytes, bytes + values.size() * sizeof(T));
    buffers_.push_back(absl::StrCat("{data: [", absl::StrJoin(data, ","), "]}"));
    return Tensor(shape, type, absl::StrCat(more, "buffer: ", buffers_.size() - 1, ", "));
  }
  int Ints(std::vector<int32_t> values) {
    return Const(absl::StrCat("[", values.size(), "]"), "INT32", values);
  }
  int Int(int32_t value) { return Const<int32_t>("[]", "INT32", {value}); }

  // `options`: "Conv2DOptions: {stride_h: 1}", or empty.
  void Op(absl::string_view code, const std::vector<int>& inputs, const std::vector<int>& outputs,
          absl::string_view options = "", absl::string_view more = "") {
    std::string text =
        absl::StrCat("{opcode_index: ", codes_.size(), ", inputs: [", absl::StrJoin(inputs, ","),
                     "], outputs: [", absl::StrJoin(outputs, ","), "]", more);
    if (!options.empty()) {
      const auto colon = options.find(':');
      const absl::string_view second =
          absl::StartsWith(options, "Stablehlo") || absl::StartsWith(options, "StableHLO") ? "_2"
                                                                                           : "";
      absl::StrAppend(&text, ", builtin_options", second, "_type: \"", options.substr(0, colon),
                      "\", builtin_options", second, options.substr(colon));
    }
    operators_.push_back(text + "}");
    const bool custom = absl::StartsWith(code, "custom:");
    codes_.push_back(custom ? absl::StrCat("{builtin_code: \"CUSTOM\", deprecated_builtin_code: 32,"
                                           " custom_code: \"",
                                           code.substr(7), "\"}")
                            : absl::StrCat("{builtin_code: \"", code, "\"}"));
  }

  // Ends a subgraph; the next tensors and operators are those of another.
  void EndSubgraph(const std::vector<int>& outputs) {
    subgraphs_.push_back(absl::StrCat(
        "{name: \"s", subgraphs_.size(), "\", tensors: [", absl::StrJoin(tensors_, ","),
        "], inputs: [", absl::StrJoin(inputs_, ","), "], outputs: [", absl::StrJoin(outputs, ","),
        "], operators: [", absl::StrJoin(operators_, ","), "]}"));
    tensors_.clear();
    inputs_.clear();
    operators_.clear();
  }
  // `more`: other fields of the model.
  std::string Bytes(absl::string_view more = "") const {
    return TfliteOfText(absl::StrCat("{version: 3, operator_codes: [", absl::StrJoin(codes_, ","),
                                     "], subgraphs: [", absl::StrJoin(subgraphs_, ","),
                                     "], buffers: [", absl::StrJoin(buffers_, ","), "]", more,
                                     "}"));
  }
  std::string Bytes(const std::vector<int>& outputs) {
    EndSubgraph(outputs);
    return Bytes();
  }

 private:
  std::vector<std::string> tensors_, operators_, codes_, subgraphs_, buffers_ = {"{}"};
  std::vector<int> inputs_;
};

inline StatusOr<LiteModel> ReadTfliteBytes(const std::string& bytes) {
  // Of its own size: what reads beyond it is seen by the sanitizers.
  auto kept = std::make_shared<std::vector<char>>(bytes.begin(), bytes.end());
  kept->shrink_to_fit();
  return ReadTflite({kept->data(), kept->size()}, kept);
}

// Reads and lowers.
inline Status LowerTflite(const std::string& bytes) {
  ASSIGN_OR_RETURN(const LiteModel lite, ReadTfliteBytes(bytes));
  return MetaGraphOfLite(lite).status();
}

// Reads, lowers, loads and runs: the answers of the only signature. Inputs that are not given are
// zeros, their free sizes 1.
inline StatusOr<NamedTensors> RunTflite(const std::string& bytes, NamedTensors inputs = {}) {
  // As a program's limit, so that no size that a file states fills the machine.
  SetHeapLimit(HeapLive() + (int64_t{1} << 30));
  ASSIGN_OR_RETURN(const LiteModel lite, ReadTfliteBytes(bytes));
  ASSIGN_OR_RETURN(MetaGraph meta, MetaGraphOfLite(lite));
  ASSIGN_OR_RETURN(const auto model, LoadedModel::Load(std::move(meta), ""));
  std::string name;
  for (const auto& [key, signature] : model->meta().signatures) {
    if (!signature.method_name.empty()) name = key;
  }
  ASSIGN_OR_RETURN(const Signature* signature, model->FindSignature(name));
  for (const auto& [key, slot] : LoadedModel::Slots(signature->inputs)) {
    if (inputs.contains(key)) continue;
    Dims dims;
    for (int i = 0; i < slot.shape.rank(); ++i) {
      dims.push_back(slot.shape[i] < 0 ? 1 : slot.shape[i]);
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    ASSIGN_OR_RETURN(inputs[key], Tensor::Zeros(slot.dtype, shape));
  }
  RunOptions options;
  options.timeout = absl::Seconds(20);
  return model->RunSignature(name, inputs, options);
}

}  // namespace smelt

#endif  // SMELT_TESTS_TFLITE_TEXT_H_
