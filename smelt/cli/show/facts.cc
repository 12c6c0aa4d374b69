#include "smelt/cli/show/facts.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "smelt/cli/numpy/text.h"
#include "smelt/cli/show/python.h"
#include "smelt/io/fs.h"
#include "smelt/kernels/kernel.h"
#include "smelt/model/function_signatures.h"
#include "smelt/model/model_folder.h"
#include "smelt/wire/bundle/bundle.h"

namespace smelt {
namespace {

// -1 when the shape is not known, or the elements have no size of their own.
int64_t BytesOf(Dtype dtype, const PartialShape& shape) {
  const auto size = static_cast<int64_t>(DtypeSize(dtype));
  if (size == 0 || !shape.fully_known()) return -1;
  const StatusOr<Shape> checked = Shape::Make(shape.dims());
  int64_t bytes = 0;
  if (!checked.ok() || __builtin_mul_overflow(checked->num_elements(), size, &bytes)) return -1;
  return bytes;
}

Status AddBundleVariables(const std::string& prefix, const FileSystem& files,
                          MetaGraphFacts* facts) {
  ASSIGN_OR_RETURN(auto reader, BundleReader::Open(prefix, files));
  std::map<std::string, std::string> python_names;
  // The keys do where the names cannot be read.
  if (auto names = CheckpointVariableNames(*reader); names.ok()) python_names = *std::move(names);
  for (const std::string& key : reader->names()) {
    if (key == kCheckpointObjectGraph) continue;
    ASSIGN_OR_RETURN(const BundleEntry* entry, reader->Find(key));
    auto name = python_names.find(key);
    VariableFacts v{name == python_names.end() ? key : name->second, key, entry->dtype,
                    entry->shape, 0};
    v.bytes = entry->partitioned() ? BytesOf(v.dtype, v.shape) : entry->size;
    facts->variables.push_back(std::move(v));
  }
  facts->from_bundle = true;
  return OkStatus();
}

void AddGraphVariables(const Graph& graph, std::set<std::string>* seen, MetaGraphFacts* facts) {
  for (const Node* node : graph.Nodes()) {
    if (!node->Is("VarHandleOp") && !node->Is("VariableV2") && !node->Is("Variable")) continue;
    std::string name = node->String("shared_name");
    if (name.empty()) name = node->name();
    if (!seen->insert(name).second) continue;
    VariableFacts v{name, "", node->Type("dtype"), node->Get<PartialShape>("shape", {}), 0};
    v.bytes = BytesOf(v.dtype, v.shape);
    facts->variables.push_back(std::move(v));
  }
}

void CountOps(const MetaGraph& meta, MetaGraphFacts* facts) {
  const FunctionLibrary& library = *meta.graph->library();
  std::map<std::string, int64_t> counts;
  const auto count = [&](const Node& node) {
    ++facts->num_nodes;
    if (library.Find(node.op()) == nullptr) ++counts[std::string(node.op())];
  };
  for (const Node* node : meta.graph->Nodes()) count(*node);
  for (const Function* f : library.Functions()) {
    const std::set<const Node*> args(f->args.begin(), f->args.end());
    for (const Node* node : f->body->Nodes()) {
      if (args.count(node) == 0) count(*node);
    }
  }
  for (const auto& [op, n] : counts) {
    // XlaCallModule runs as the functions that its module is made into.
    facts->ops.push_back({op, n, op == "XlaCallModule" || !KernelsOf(op).empty()});
  }
  std::stable_sort(facts->ops.begin(), facts->ops.end(),
                   [](const OpFacts& a, const OpFacts& b) { return a.count > b.count; });
}

// "x: float32 (None, 3)" and so on: every tensor of the arguments, other values as Python has them.
std::string ArgumentsText(const StructuredValue& v) {
  switch (v.kind) {
    case StructuredValue::Kind::kTensorSpec:
    case StructuredValue::Kind::kBoundedTensorSpec:
      return absl::StrCat(v.text, v.text.empty() ? "" : ": ", TfDtypeName(v.dtype), " ",
                          ShapeTuple(v.shape));
    case StructuredValue::Kind::kList:
    case StructuredValue::Kind::kTuple:
    case StructuredValue::Kind::kDict:
    case StructuredValue::Kind::kNamedTuple: {
      std::vector<std::string> parts;
      for (size_t i = 0; i < v.values.size(); ++i) {
        // A tensor that is named as its key needs no key.
        const bool keyed = i < v.keys.size() && v.keys[i] != v.values[i].text;
        parts.push_back(absl::StrCat(keyed ? v.keys[i] + "=" : "", ArgumentsText(v.values[i])));
      }
      const bool list = v.is(StructuredValue::Kind::kList);
      const bool tuple = v.is(StructuredValue::Kind::kTuple);
      return absl::StrCat(list    ? "["
                          : tuple ? "("
                                  : "{",
                          absl::StrJoin(parts, ", "),
                          list    ? "]"
                          : tuple ? ")"
                                  : "}");
    }
    default:
      return PythonRepr(v);
  }
}

// "(x: float32 (None, 3), True) -> ..."
std::string OptionText(const FunctionOption& option) {
  if (option.concrete == nullptr) return "";
  const StructuredValue& signature = option.concrete->input_signature;
  std::vector<std::string> parts;
  if (signature.values.size() == 2) {
    for (const StructuredValue& v : signature.values[0].values) parts.push_back(ArgumentsText(v));
    const StructuredValue& keywords = signature.values[1];
    for (size_t i = 0; i < keywords.keys.size(); ++i) {
      const StructuredValue& v = keywords.values[i];
      const bool keyed = keywords.keys[i] != v.text;
      parts.push_back(absl::StrCat(keyed ? keywords.keys[i] + "=" : "", ArgumentsText(v)));
    }
  }
  return absl::StrCat(" (", absl::StrJoin(parts, ", "), ") -> ",
                      ArgumentsText(option.concrete->output_signature));
}

std::string ShowBytes(int64_t n) { return n < 0 ? "? bytes" : absl::StrCat(n, " bytes"); }

void AppendVariables(const MetaGraphFacts& facts, std::string* out) {
  absl::StrAppend(out, "  Variables: ", facts.variables.size(), ", ",
                  ShowBytes(facts.variable_bytes),
                  facts.variables.empty() ? ""
                  : facts.from_bundle     ? " (variables/variables.index)"
                                          : " (nodes of the graph)",
                  "\n");
  for (const VariableFacts& v : facts.variables) {
    const std::string key = v.key.empty() || v.key == v.name ? "" : absl::StrCat("  [", v.key, "]");
    absl::StrAppend(out, "    ", v.name, ": ", TfDtypeName(v.dtype), " ", ShapeTuple(v.shape), ", ",
                    ShowBytes(v.bytes), key, "\n");
  }
}

}  // namespace

MetaGraphFacts FactsOf(const MetaGraph& meta, const std::string& dir) {
  MetaGraphFacts facts;
  if (!meta.object_graph.empty()) {
    auto objects = ParseObjectGraph(meta.object_graph);
    if (objects.ok()) {
      facts.objects = *std::move(objects);
      facts.functions = RootFunctions(facts.objects, *meta.graph);
    } else {
      facts.notes.emplace_back(objects.status().message());
    }
  }
  const std::string prefix = JoinPath(dir, "variables/variables");
  if (Exists(prefix + ".index")) {
    if (const Status s =
            AddBundleVariables(prefix, FileSystem::Of(FoldersOfModel(dir), {}), &facts);
        !s.ok()) {
      facts.notes.emplace_back(s.message());
    }
  }
  if (!facts.from_bundle) {
    std::set<std::string> seen;
    AddGraphVariables(*meta.graph, &seen, &facts);
    for (const Function* f : meta.graph->library()->Functions()) {
      AddGraphVariables(*f->body, &seen, &facts);
    }
  }
  for (const VariableFacts& v : facts.variables) {
    if (v.bytes < 0) continue;
    if (__builtin_add_overflow(facts.variable_bytes, v.bytes, &facts.variable_bytes)) {
      facts.variable_bytes = INT64_MAX;
    }
  }
  for (const AssetFile& asset : AssetsOf(meta)) {
    const StatusOr<int64_t> size = FileSize(JoinPath(JoinPath(dir, "assets"), asset.filename));
    facts.assets.push_back({asset.filename, asset.tensor_name, size.ok() ? *size : -1});
  }
  CountOps(meta, &facts);
  return facts;
}

std::string FactsText(const MetaGraph& meta, const MetaGraphFacts& facts) {
  std::string out = absl::StrCat("Details of the MetaGraphDef with tag-set: '",
                                 absl::StrJoin(meta.tags, ", "), "'\n");
  absl::StrAppend(&out, "  Written by: TensorFlow ",
                  meta.tensorflow_version.empty() ? "of unknown version" : meta.tensorflow_version,
                  ", producer ", meta.versions.producer, "\n");
  absl::StrAppend(&out, "  Functions: ", meta.graph->library()->Functions().size(), "\n");
  for (const RootFunction& f : facts.functions) {
    for (size_t i = 0; i < f.options.size(); ++i) {
      absl::StrAppend(&out, "    ", FunctionSignatureName(f.attribute, f.options[i].index),
                      OptionText(f.options[i]), "\n");
    }
  }
  absl::StrAppend(&out, "  Function aliases: ", meta.function_aliases.size(), "\n");
  for (const auto& [function, alias] : meta.function_aliases) {
    absl::StrAppend(&out, "    ", alias, ": ", function, "\n");
  }
  AppendVariables(facts, &out);
  absl::StrAppend(&out, "  Assets: ", facts.assets.size(), "\n");
  for (const AssetFacts& a : facts.assets) {
    absl::StrAppend(&out, "    ", a.filename, ": ", a.bytes < 0 ? "missing" : ShowBytes(a.bytes),
                    ", fed to ", a.tensor, "\n");
  }
  absl::StrAppend(&out, "  Ops: ", facts.ops.size(), " kinds, ", facts.num_nodes, " nodes\n");
  for (const OpFacts& op : facts.ops) {
    absl::StrAppendFormat(&out, "  %6d  %s%s\n", op.count, op.op,
                          op.has_kernel ? "" : "  (no kernel)");
  }
  for (const std::string& note : facts.notes) absl::StrAppend(&out, "  Note: ", note, "\n");
  return out;
}

}  // namespace smelt
