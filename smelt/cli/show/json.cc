// smelt show --json.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "smelt/cli/json_shape.h"
#include "smelt/cli/show/facts.h"
#include "smelt/cli/show/python.h"
#include "smelt/cli/show/signatures.h"
#include "smelt/io/json_writer.h"
#include "smelt/model/function_signatures.h"

namespace smelt {
namespace {

// Strings are UTF-8: the protos that they come from were checked for it when read.

// null for a negative one.
void BytesField(JsonWriter& w, int64_t bytes) {
  w.Key("bytes");
  bytes < 0 ? w.Null() : w.Int(bytes);
}

// Python's values as JSON has them; what JSON lacks as {"type": .., ..}.
void WriteValue(JsonWriter& w, const StructuredValue& v) {
  switch (v.kind) {
    case StructuredValue::Kind::kUnset:
    case StructuredValue::Kind::kNone:
      return w.Null();
    case StructuredValue::Kind::kBool:
      return w.Bool(v.integer != 0);
    case StructuredValue::Kind::kInt:
      return w.Int(v.integer);
    case StructuredValue::Kind::kString:
      return w.Text(v.text);
    case StructuredValue::Kind::kFloat:
      if (!std::isfinite(v.number)) break;
      return w.Real(v.number);
    case StructuredValue::Kind::kList:
    case StructuredValue::Kind::kTuple:
      return w.Array(v.values, [&](const StructuredValue& e) { WriteValue(w, e); });
    case StructuredValue::Kind::kDict:
    case StructuredValue::Kind::kNamedTuple:
      return w.Object([&] {
        for (size_t i = 0; i < v.values.size(); ++i) {
          w.Key(v.keys[i]);
          WriteValue(w, v.values[i]);
        }
      });
    case StructuredValue::Kind::kTensorSpec:
      return w.Object([&] {
        w.Field("type", "TensorSpec");
        w.Field("name", v.text);
        w.Field("dtype", DtypeEnumName(v.dtype));
        ShapeField(w, v.shape);
      });
    default:
      break;
  }
  w.Object([&] {
    w.Field("type", PythonTypeName(v));
    w.Field("repr", PythonRepr(v));
  });
}

void WriteTensorInfo(JsonWriter& w, const TensorInfo& info) {
  w.Object([&] {
    w.Field("dtype", DtypeEnumName(info.dtype));
    ShapeField(w, info.shape);
    if (info.kind == TensorInfo::Kind::kSparse) {
      w.Field("values", info.values_name);
      w.Field("indices", info.indices_name);
      w.Field("dense_shape", info.dense_shape_name);
    } else if (info.kind == TensorInfo::Kind::kComposite) {
      w.Array("components", info.components, [&](const TensorInfo& c) { WriteTensorInfo(w, c); });
    } else {
      w.Field("name", info.name);
    }
  });
}

void WriteSignature(JsonWriter& w, const Signature& signature) {
  w.Object([&] {
    for (const auto* side : {&signature.inputs, &signature.outputs}) {
      w.Object(side == &signature.inputs ? "inputs" : "outputs", [&] {
        for (const auto& [key, info] : *side) {
          w.Key(key);
          WriteTensorInfo(w, info);
        }
      });
    }
    w.Field("method_name", signature.method_name);
  });
}

void WriteFunctionOption(JsonWriter& w, const std::string& attribute,
                         const FunctionOption& option) {
  w.Object([&] {
    w.Field("signature_def", FunctionSignatureName(attribute, option.index));
    w.Field("function", option.function);
    if (option.concrete == nullptr) return;
    const StructuredValue& signature = option.concrete->input_signature;
    if (signature.values.size() == 2) {
      w.Key("arguments");
      WriteValue(w, signature.values[0]);
      w.Key("named_arguments");
      WriteValue(w, signature.values[1]);
    }
    w.Key("result");
    WriteValue(w, option.concrete->output_signature);
  });
}

void WriteFacts(JsonWriter& w, const MetaGraph& meta, const MetaGraphFacts& facts) {
  w.Field("tensorflow_version", meta.tensorflow_version);
  w.Field("producer", meta.versions.producer);
  const auto functions = meta.graph->library()->Functions();
  w.Field("num_functions", static_cast<int64_t>(functions.size()));
  w.Object("function_aliases", [&] {
    for (const auto& [function, alias] : meta.function_aliases) w.Field(function, alias);
  });
  w.Objects("variables", facts.variables, [&](const VariableFacts& v) {
    w.Field("name", v.name);
    if (!v.key.empty()) w.Field("key", v.key);
    w.Field("dtype", DtypeEnumName(v.dtype));
    ShapeField(w, v.shape);
    BytesField(w, v.bytes);
  });
  w.Field("variable_bytes", facts.variable_bytes);
  w.Objects("assets", facts.assets, [&](const AssetFacts& a) {
    w.Field("filename", a.filename);
    w.Field("tensor", a.tensor);
    BytesField(w, a.bytes);
  });
  w.Field("num_nodes", facts.num_nodes);
  w.Objects("op_counts", facts.ops, [&](const OpFacts& op) {
    w.Field("op", op.op);
    w.Field("count", op.count);
    w.Flag("kernel", op.has_kernel);
  });
  w.Objects("library", functions, [&](const Function* f) {
    w.Field("function", f->name());
    w.Field("num_nodes", static_cast<int64_t>(f->body->num_nodes()));
  });
  w.Texts("notes", facts.notes);
}

void WriteMetaGraph(JsonWriter& w, const MetaGraph& meta, const MetaGraphFacts& facts) {
  w.Texts("tags", meta.tags);
  w.Object("signatures", [&] {
    for (const auto& [name, signature] : meta.signatures) {
      w.Key(name);
      WriteSignature(w, signature);
    }
  });
  w.Texts("ops", UsedOps(*meta.graph));
  w.Object("functions", [&] {
    for (const RootFunction& f : facts.functions) {
      w.Array(f.attribute, f.options,
              [&](const FunctionOption& o) { WriteFunctionOption(w, f.attribute, o); });
    }
  });
  WriteFacts(w, meta, facts);
}

}  // namespace

std::string ShowJson(const SavedModel& model, const std::vector<const MetaGraph*>& metas,
                     const std::vector<MetaGraphFacts>& facts) {
  JsonWriter w;
  w.Object([&] {
    w.Field("dir", model.dir);
    w.Field("schema_version", model.schema_version);
    size_t i = 0;
    w.Objects("meta_graphs", metas,
              [&](const MetaGraph* meta) { WriteMetaGraph(w, *meta, facts[i++]); });
  });
  return absl::StrCat(w.text(), "\n");
}

}  // namespace smelt
