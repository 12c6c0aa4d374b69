#include "smelt/cli/show/signatures.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "smelt/cli/show/python.h"

namespace smelt {
namespace {

void AppendTensorInfo(const TensorInfo& info, absl::string_view indent, std::string* out) {
  const std::string shape = info.shape.known_rank()
                                ? absl::StrCat("(", absl::StrJoin(info.shape.dims(), ", "), ")")
                                : "unknown_rank";
  absl::StrAppend(out, indent, "    dtype: ", DtypeEnumName(info.dtype), "\n", indent,
                  "    shape: ", shape, "\n", indent, "    name: ", info.name, "\n");
}

std::string ReprList(const std::vector<std::string>& values, absl::string_view open,
                     absl::string_view close) {
  return absl::StrCat(open,
                      absl::StrJoin(values, ", ",
                                    [](std::string* out, const std::string& v) {
                                      absl::StrAppend(out, PythonStringRepr(v));
                                    }),
                      close);
}

}  // namespace

std::vector<const MetaGraph*> ListedMetaGraphs(const SavedModel& model) {
  std::vector<const MetaGraph*> metas;
  for (const MetaGraph& m : model.meta_graphs) metas.push_back(&m);
  std::stable_sort(metas.begin(), metas.end(),
                   [](const MetaGraph* a, const MetaGraph* b) { return a->tags < b->tags; });
  return metas;
}

std::string TagSetsText(const SavedModel& model) {
  std::string out = "The given SavedModel contains the following tag-sets:\n";
  for (const MetaGraph* meta : ListedMetaGraphs(model)) {
    std::vector<std::string> tags = meta->tags;
    std::sort(tags.begin(), tags.end());
    absl::StrAppend(&out, PythonStringRepr(absl::StrJoin(tags, ", ")), "\n");
  }
  return out;
}

std::string SignatureKeysText(const MetaGraph& meta) {
  std::string out =
      "The given SavedModel MetaGraphDef contains SignatureDefs with the following keys:\n";
  for (const auto& [key, signature] : meta.signatures) {
    absl::StrAppend(&out, "SignatureDef key: \"", key, "\"\n");
  }
  return out;
}

std::string SignatureText(const Signature& signature, int indent) {
  const std::string space(static_cast<size_t>(indent) * 2, ' ');
  const std::string deeper = space + "  ";
  std::string out = space + "The given SavedModel SignatureDef contains the following input(s):\n";
  for (const auto& [key, info] : signature.inputs) {
    absl::StrAppend(&out, space, "  inputs['", key, "'] tensor_info:\n");
    AppendTensorInfo(info, deeper, &out);
  }
  absl::StrAppend(&out, space,
                  "The given SavedModel SignatureDef contains the following output(s):\n");
  for (const auto& [key, info] : signature.outputs) {
    absl::StrAppend(&out, space, "  outputs['", key, "'] tensor_info:\n");
    AppendTensorInfo(info, deeper, &out);
  }
  absl::StrAppend(&out, space, "Method name is: ", signature.method_name, "\n");
  return out;
}

std::vector<std::string> UsedOps(const Graph& graph) {
  const FunctionLibrary& library = *graph.library();
  std::set<std::string> used;
  std::vector<const Function*> waiting;
  const auto mark = [&](absl::string_view op) {
    if (!used.emplace(op).second) return;
    if (const Function* f = library.Find(op); f != nullptr) waiting.push_back(f);
  };
  const auto process = [&](const Node& node) {
    mark(node.op());
    if (IsPartitionedCall(node)) {
      const FuncAttr* callee = node.Func("f");
      mark(callee != nullptr ? absl::string_view(callee->name) : "");
    }
  };
  for (const Node* node : graph.Nodes()) process(*node);
  while (!waiting.empty()) {
    const Function* f = waiting.back();
    waiting.pop_back();
    const std::set<const Node*> args(f->args.begin(), f->args.end());
    for (const Node* node : f->body->Nodes()) {
      if (args.count(node) == 0) process(*node);
    }
  }
  std::vector<std::string> ops;
  for (const std::string& op : used) {
    if (library.Find(op) == nullptr) ops.push_back(op);
  }
  return ops;
}

std::string UsedOpsText(const MetaGraph& meta) {
  const std::vector<std::string> ops = UsedOps(*meta.graph);
  return absl::StrCat(
      "The MetaGraph with tag set ", ReprList(meta.tags, "[", "]"),
      " contains the following ops: ", ops.empty() ? "set()" : ReprList(ops, "{", "}"), "\n");
}

std::string MetaGraphText(const MetaGraph& meta) {
  std::string out = absl::StrCat("\nMetaGraphDef with tag-set: '", absl::StrJoin(meta.tags, ", "),
                                 "' contains the following SignatureDefs:\n");
  for (const auto& [key, signature] : meta.signatures) {
    absl::StrAppend(&out, "\nsignature_def['", key, "']:\n", SignatureText(signature, 1));
  }
  return out + UsedOpsText(meta);
}

}  // namespace smelt
