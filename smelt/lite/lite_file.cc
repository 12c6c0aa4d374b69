#include "smelt/lite/lite_file.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "smelt/io/fs.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/import.h"
#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

std::vector<LiteSignature> SignaturesOf(const LiteModel& model) {
  if (!model.signatures.empty()) return model.signatures;
  LiteSignature s;
  s.key = "serving_default";
  const LiteSubgraph& main = model.subgraphs[0];
  for (const int32_t i : main.inputs) {
    s.inputs.emplace_back(main.tensors[static_cast<size_t>(i)].name, i);
  }
  for (const int32_t i : main.outputs) {
    s.outputs.emplace_back(main.tensors[static_cast<size_t>(i)].name, i);
  }
  return {s};
}

// The position of a tensor among those of a subgraph's inputs or outputs.
StatusOr<int> PlaceOf(int32_t tensor, const std::vector<int32_t>& in, absl::string_view what) {
  const auto at = std::ranges::find(in, tensor);
  if (at == in.end())
    return InvalidArgument("tensor ", tensor, " is no ", what, " of its subgraph");
  return static_cast<int>(at - in.begin());
}

Status AddSignature(const LiteSignature& s, const LiteModel& model, const LiteFunctions& functions,
                    MetaGraph& meta) {
  const LiteSubgraph& from = model.subgraphs[s.subgraph];
  const std::string& function = functions.names[s.subgraph];
  const Function* f = functions.library->Find(function);
  Signature signature;
  signature.method_name = "tensorflow/serving/predict";
  std::vector<Endpoint> inputs(from.inputs.size());
  DtypeVector in, out;
  for (const auto& [key, tensor] : s.inputs) {
    ASSIGN_OR_RETURN(const int place, PlaceOf(tensor, from.inputs, "input"));
    const Node* arg = f->args[static_cast<size_t>(place)];
    AttrMap attrs;
    attrs.Set("dtype", arg->output_types[0]);
    const auto* shapes = arg->Find(kOutputShapes)->get<std::vector<PartialShape>>();
    // The rank of a file's tensor may be free as its sizes are; a scalar's says so.
    const bool scalar =
        !from.tensors[static_cast<size_t>(tensor)].has_rank && (*shapes)[0].rank() == 0;
    attrs.Set("shape", scalar ? PartialShape::Unknown() : (*shapes)[0]);
    ASSIGN_OR_RETURN(Node * n, meta.graph->Add(absl::StrCat(s.key, "_", key), "Placeholder", {},
                                               std::move(attrs)));
    TensorInfo info;
    info.kind = TensorInfo::Kind::kDense;
    info.name = EndpointName({n, 0});
    info.dtype = n->output_types[0];
    info.shape = n->Get<PartialShape>("shape", {});
    signature.inputs[key] = std::move(info);
    inputs[static_cast<size_t>(place)] = {n, 0};
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].node == nullptr) {
      return InvalidArgument("it has no name for input ", i, " of its subgraph");
    }
    in.push_back(f->signature.inputs[i].type);
  }
  for (const ArgDef& arg : f->signature.outputs) out.push_back(arg.type);
  AttrMap attrs;
  attrs.Set("f", FuncAttr{function, nullptr});
  attrs.Set("Tin", in);
  attrs.Set("Tout", out);
  ASSIGN_OR_RETURN(Node * call,
                   meta.graph->Add(absl::StrCat(s.key, "_call"), "StatefulPartitionedCall", inputs,
                                   std::move(attrs)));
  for (const auto& [key, tensor] : s.outputs) {
    ASSIGN_OR_RETURN(const int place, PlaceOf(tensor, from.outputs, "output"));
    TensorInfo info;
    info.kind = TensorInfo::Kind::kDense;
    info.name = absl::StrCat(call->name(), ":", place);
    info.dtype = out[static_cast<size_t>(place)];
    const LiteTensor& t = from.tensors[static_cast<size_t>(tensor)];
    const std::vector<int32_t>& sizes = t.shape_signature.empty() ? t.shape : t.shape_signature;
    info.shape = PartialShape::Of(std::vector<int64_t>(sizes.begin(), sizes.end()));
    signature.outputs[key] = std::move(info);
  }
  meta.signatures[s.key] = std::move(signature);
  return OkStatus();
}

}  // namespace

StatusOr<LiteModel> ReadLiteFile(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, MapFile(path));
  auto model = ReadTflite(file->bytes(), file);
  if (!model.ok()) return Prefix(model.status(), absl::StrCat(path, ": "));
  return model;
}

StatusOr<MetaGraph> MetaGraphOfLite(const LiteModel& model) {
  ASSIGN_OR_RETURN(const LiteFunctions functions, ImportLite(model));
  for (const std::string& name : functions.names) {
    Function* f = functions.library->Find(name);
    // Results follow their nodes through the rewriting.
    std::vector<Node*> retvals;
    for (size_t i = 0; i < f->results.size(); ++i) {
      AttrMap attrs;
      attrs.Set("T", f->signature.outputs[i].type);
      attrs.Set("index", static_cast<int64_t>(i));
      ASSIGN_OR_RETURN(Node * n, f->body->Add("retval", "_Retval", {f->results[i][0]}, attrs));
      retvals.push_back(n);
    }
    const Status lowered = Lower(*f->body);
    if (!lowered.ok()) return Prefix(lowered, absl::StrCat("subgraph '", name, "': "));
    for (size_t i = 0; i < retvals.size(); ++i) {
      f->results[i] = {retvals[i]->input(0)};
      f->body->Remove(retvals[i]);
    }
  }
  MetaGraph meta;
  meta.tags = {"serve"};
  meta.graph = std::make_unique<Graph>(functions.library);
  for (const LiteSignature& s : SignaturesOf(model)) {
    const Status added = AddSignature(s, model, functions, meta);
    if (!added.ok()) return Prefix(added, absl::StrCat("signature '", s.key, "': "));
  }
  return meta;
}

StatusOr<SavedModel> ReadAnyModel(const std::string& dir, ModelPart part) {
  if (IsDir(dir) || !Exists(dir)) return ReadSavedModel(dir, part);
  ASSIGN_OR_RETURN(const LiteModel lite, ReadLiteFile(dir));
  auto meta = MetaGraphOfLite(lite);
  if (!meta.ok()) return Prefix(meta.status(), absl::StrCat(dir, ": "));
  SavedModel out;
  out.dir = dir;
  out.meta_graphs.push_back(*std::move(meta));
  return out;
}

}  // namespace smelt
