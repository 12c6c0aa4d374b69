// smelt show --json.
#include <cmath>

#include "rapidjson/prettywriter.h"
#include "rapidjson/stringbuffer.h"
#include "smelt/cli/show/facts.h"
#include "smelt/cli/show/python.h"
#include "smelt/cli/show/signatures.h"
#include "smelt/model/function_signatures.h"

namespace smelt {
namespace {

// Strings are UTF-8: the protos that they come from were checked for it when read.
class ShowJsonWriter {
 public:
  void Open() { w_.StartObject(); }
  void Close() { w_.EndObject(); }
  void OpenArray() { w_.StartArray(); }
  void CloseArray() { w_.EndArray(); }
  void Key(absl::string_view k) { w_.Key(k.data(), static_cast<rapidjson::SizeType>(k.size())); }
  void Text(absl::string_view s) {
    w_.String(s.data(), static_cast<rapidjson::SizeType>(s.size()));
  }
  void Int(int64_t n) { w_.Int64(n); }
  void Bool(bool b) { w_.Bool(b); }
  void Null() { w_.Null(); }
  void Field(absl::string_view key, absl::string_view text) {
    Key(key);
    Text(text);
  }
  void Field(absl::string_view key, int64_t n) {
    Key(key);
    Int(n);
  }

  void Texts(absl::string_view key, const std::vector<std::string>& texts) {
    Key(key);
    OpenArray();
    for (const std::string& t : texts) Text(t);
    CloseArray();
  }
  // null for an unknown rank, -1 for an unknown size.
  void ShapeField(const PartialShape& shape) {
    Key("shape");
    if (!shape.known_rank()) return Null();
    OpenArray();
    for (int64_t d : shape.dims()) Int(d);
    CloseArray();
  }
  // null for a negative one.
  void BytesField(int64_t bytes) {
    Key("bytes");
    if (bytes < 0) return Null();
    Int(bytes);
  }

  void Value(const StructuredValue& v);
  void Info(const TensorInfo& info);
  void Signatures(const MetaGraph& meta);
  void Functions(const MetaGraphFacts& facts);
  void Facts(const MetaGraph& meta, const MetaGraphFacts& facts);
  std::string Finish() { return std::string(buffer_.GetString(), buffer_.GetSize()) + "\n"; }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> w_{buffer_};
};

// Python's values as JSON has them; what JSON lacks as {"type": .., ..}.
void ShowJsonWriter::Value(const StructuredValue& v) {
  switch (v.kind) {
    case StructuredValue::Kind::kUnset:
    case StructuredValue::Kind::kNone:
      return Null();
    case StructuredValue::Kind::kBool:
      return Bool(v.integer != 0);
    case StructuredValue::Kind::kInt:
      return Int(v.integer);
    case StructuredValue::Kind::kString:
      return Text(v.text);
    case StructuredValue::Kind::kFloat:
      if (!std::isfinite(v.number)) break;
      w_.Double(v.number);
      return;
    case StructuredValue::Kind::kList:
    case StructuredValue::Kind::kTuple:
      OpenArray();
      for (const StructuredValue& e : v.values) Value(e);
      return CloseArray();
    case StructuredValue::Kind::kDict:
    case StructuredValue::Kind::kNamedTuple:
      Open();
      for (size_t i = 0; i < v.values.size(); ++i) {
        Key(v.keys[i]);
        Value(v.values[i]);
      }
      return Close();
    case StructuredValue::Kind::kTensorSpec:
      Open();
      Field("type", "TensorSpec");
      Field("name", v.text);
      Field("dtype", DtypeEnumName(v.dtype));
      ShapeField(v.shape);
      return Close();
    default:
      break;
  }
  Open();
  Field("type", PythonTypeName(v));
  Field("repr", PythonRepr(v));
  Close();
}

void ShowJsonWriter::Info(const TensorInfo& info) {
  Open();
  Field("dtype", DtypeEnumName(info.dtype));
  ShapeField(info.shape);
  if (info.kind == TensorInfo::Kind::kSparse) {
    Field("values", info.values_name);
    Field("indices", info.indices_name);
    Field("dense_shape", info.dense_shape_name);
  } else if (info.kind == TensorInfo::Kind::kComposite) {
    Key("components");
    OpenArray();
    for (const TensorInfo& c : info.components) Info(c);
    CloseArray();
  } else {
    Field("name", info.name);
  }
  Close();
}

void ShowJsonWriter::Signatures(const MetaGraph& meta) {
  Key("signatures");
  Open();
  for (const auto& [name, signature] : meta.signatures) {
    Key(name);
    Open();
    for (const auto* side : {&signature.inputs, &signature.outputs}) {
      Key(side == &signature.inputs ? "inputs" : "outputs");
      Open();
      for (const auto& [key, info] : *side) {
        Key(key);
        Info(info);
      }
      Close();
    }
    Field("method_name", signature.method_name);
    Close();
  }
  Close();
}

void ShowJsonWriter::Functions(const MetaGraphFacts& facts) {
  Key("functions");
  Open();
  for (const RootFunction& f : facts.functions) {
    Key(f.attribute);
    OpenArray();
    for (size_t i = 0; i < f.options.size(); ++i) {
      const FunctionOption& option = f.options[i];
      Open();
      Field("signature_def", FunctionSignatureName(f.attribute, option.index));
      Field("function", option.function);
      if (option.concrete != nullptr) {
        const StructuredValue& signature = option.concrete->input_signature;
        if (signature.values.size() == 2) {
          Key("arguments");
          Value(signature.values[0]);
          Key("named_arguments");
          Value(signature.values[1]);
        }
        Key("result");
        Value(option.concrete->output_signature);
      }
      Close();
    }
    CloseArray();
  }
  Close();
}

void ShowJsonWriter::Facts(const MetaGraph& meta, const MetaGraphFacts& facts) {
  Field("tensorflow_version", meta.tensorflow_version);
  Field("producer", meta.versions.producer);
  Field("num_functions", static_cast<int64_t>(meta.graph->library()->Functions().size()));
  Key("function_aliases");
  Open();
  for (const auto& [function, alias] : meta.function_aliases) Field(function, alias);
  Close();
  Key("variables");
  OpenArray();
  for (const VariableFacts& v : facts.variables) {
    Open();
    Field("name", v.name);
    if (!v.key.empty()) Field("key", v.key);
    Field("dtype", DtypeEnumName(v.dtype));
    ShapeField(v.shape);
    BytesField(v.bytes);
    Close();
  }
  CloseArray();
  Field("variable_bytes", facts.variable_bytes);
  Key("assets");
  OpenArray();
  for (const AssetFacts& a : facts.assets) {
    Open();
    Field("filename", a.filename);
    Field("tensor", a.tensor);
    BytesField(a.bytes);
    Close();
  }
  CloseArray();
  Field("num_nodes", facts.num_nodes);
  Key("op_counts");
  OpenArray();
  for (const OpFacts& op : facts.ops) {
    Open();
    Field("op", op.op);
    Field("count", op.count);
    Key("kernel");
    Bool(op.has_kernel);
    Close();
  }
  CloseArray();
  Key("library");
  OpenArray();
  for (const Function* f : meta.graph->library()->Functions()) {
    Open();
    Field("function", f->name());
    Field("num_nodes", static_cast<int64_t>(f->body->Nodes().size()));
    Close();
  }
  CloseArray();
  Texts("notes", facts.notes);
}

}  // namespace

std::string ShowJson(const SavedModel& model, const std::vector<const MetaGraph*>& metas,
                     const std::vector<MetaGraphFacts>& facts) {
  ShowJsonWriter w;
  w.Open();
  w.Field("dir", model.dir);
  w.Field("schema_version", model.schema_version);
  w.Key("meta_graphs");
  w.OpenArray();
  for (size_t i = 0; i < metas.size(); ++i) {
    w.Open();
    w.Texts("tags", metas[i]->tags);
    w.Signatures(*metas[i]);
    w.Texts("ops", UsedOps(*metas[i]->graph));
    w.Functions(facts[i]);
    w.Facts(*metas[i], facts[i]);
    w.Close();
  }
  w.CloseArray();
  w.Close();
  return w.Finish();
}

}  // namespace smelt
