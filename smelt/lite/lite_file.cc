#include "smelt/lite/lite_file.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "smelt/io/fs.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/node_names.h"
#include "smelt/lite/import.h"
#include "smelt/lite/lower/lowering.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

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
    Endpoint& input = inputs[static_cast<size_t>(place)];
    if (input.node == nullptr) {
      const Node* arg = f->args[static_cast<size_t>(place)];
      AttrMap attrs;
      attrs.Set("dtype", arg->output_types[0]);
      const auto* shapes = arg->Find(kOutputShapes)->get<std::vector<PartialShape>>();
      // The rank of a file's tensor may be free as its sizes are; a scalar's says so.
      const bool scalar =
          !from.tensors[static_cast<size_t>(tensor)].has_rank && (*shapes)[0].rank() == 0;
      attrs.Set("shape", scalar ? PartialShape::Unknown() : (*shapes)[0]);
      ASSIGN_OR_RETURN(Node * n,
                       meta.graph->Add(LegalNodeName(absl::StrCat(s.key, "_", key), "input"),
                                       "Placeholder", {}, std::move(attrs)));
      input = {n, 0};
    }
    TensorInfo info;
    info.kind = TensorInfo::Kind::kDense;
    info.name = EndpointName(input);
    info.dtype = input.node->output_types[0];
    info.shape = input.node->Get<PartialShape>("shape", {});
    if (!signature.inputs.emplace(key, std::move(info)).second) {
      return InvalidArgument("it has two inputs '", key, "'");
    }
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
                   meta.graph->Add(LegalNodeName(absl::StrCat(s.key, "_call"), "signature"),
                                   "StatefulPartitionedCall", inputs, std::move(attrs)));
  for (const auto& [key, tensor] : s.outputs) {
    ASSIGN_OR_RETURN(const int place, PlaceOf(tensor, from.outputs, "output"));
    TensorInfo info;
    info.kind = TensorInfo::Kind::kDense;
    info.name = absl::StrCat(call->name(), ":", place);
    info.dtype = out[static_cast<size_t>(place)];
    const LiteTensor& t = from.tensors[static_cast<size_t>(tensor)];
    const std::vector<int32_t>& sizes = t.shape_signature.empty() ? t.shape : t.shape_signature;
    info.shape = PartialShape::Of(std::vector<int64_t>(sizes.begin(), sizes.end()));
    if (!signature.outputs.emplace(key, std::move(info)).second) {
      return InvalidArgument("it has two outputs '", key, "'");
    }
  }
  if (s.key == kInitSignature || !meta.signatures.emplace(s.key, std::move(signature)).second) {
    return InvalidArgument("another one has its name");
  }
  return OkStatus();
}

// What has an effect and no way to a result runs all the same.
void KeepEffects(Function& f) {
  absl::flat_hash_set<const Node*> reached;
  std::vector<const Node*> todo;
  const auto reach = [&](const Node* n) {
    if (reached.insert(n).second) todo.push_back(n);
  };
  for (const auto& result : f.results) reach(result[0].node);
  const auto follow = [&] {
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      for (const Endpoint& e : n->inputs()) reach(e.node);
      for (const Node* before : n->control_inputs()) reach(before);
    }
  };
  follow();
  // The last of those that keep an order comes first: it reaches the others.
  std::vector<Node*> effects;
  for (Node* n : f.body->Nodes()) {
    if (n->def() != nullptr && n->def()->stateful && !n->Is({"_Arg", "VarHandleOp"})) {
      effects.push_back(n);
    }
  }
  std::ranges::reverse(effects);
  for (Node* n : effects) {
    if (reached.contains(n)) continue;
    f.control_results.emplace_back(absl::StrCat("effect_", f.control_results.size()), n);
    reach(n);
    follow();
  }
}

Status LowerFunction(Function& f, LiteResources& resources) {
  // Results follow their nodes through the rewriting.
  std::vector<Node*> retvals;
  for (size_t i = 0; i < f.results.size(); ++i) {
    AttrMap attrs;
    attrs.Set("T", f.signature.outputs[i].type);
    attrs.Set("index", static_cast<int64_t>(i));
    ASSIGN_OR_RETURN(Node * n, f.body->Add("retval", "_Retval", {f.results[i][0]}, attrs));
    retvals.push_back(n);
  }
  RETURN_IF_ERROR(Lower(*f.body, f.name(), resources));
  for (size_t i = 0; i < retvals.size(); ++i) {
    f.results[i] = {retvals[i]->input(0)};
    f.body->Remove(retvals[i]);
  }
  KeepEffects(f);
  return OkStatus();
}

// What runs once when the model is loaded: states begin, and the functions of CALL_ONCE have
// run.
Status AddInit(const LiteResources& resources, MetaGraph& meta) {
  Graph& graph = *meta.graph;
  std::vector<Node*> before;
  for (const LiteResources::State& s : resources.states) {
    ASSIGN_OR_RETURN(const Tensor begin, s.Begin());
    AttrMap handle, assign;
    handle.Set("shared_name", s.name);
    handle.Set("dtype", s.type);
    handle.Set("shape", PartialShape(s.shape));
    assign.Set("dtype", s.type);
    ASSIGN_OR_RETURN(Node * var, graph.Add(graph.FreeName("state"), "VarHandleOp", {}, handle));
    Node* value = graph.AddConst(graph.FreeName("begin"), begin);
    ASSIGN_OR_RETURN(Node * n, graph.Add(graph.FreeName("assign"), "AssignVariableOp",
                                         {{var, 0}, {value, 0}}, assign));
    before.push_back(n);
  }
  std::vector<std::string> once;
  for (const std::string& f : resources.run_once) {
    if (std::ranges::find(once, f) != once.end()) continue;
    once.push_back(f);
    const Function* function = graph.library()->Find(f);
    if (!function->args.empty()) {
      return InvalidArgument("subgraph '", f, "', which runs once, takes arguments");
    }
    DtypeVector out;
    for (const ArgDef& arg : function->signature.outputs) out.push_back(arg.type);
    AttrMap attrs;
    attrs.Set("f", FuncAttr{f, nullptr});
    attrs.Set("Tin", DtypeVector{});
    attrs.Set("Tout", out);
    ASSIGN_OR_RETURN(Node * n, graph.Add(graph.FreeName("call_once"), "StatefulPartitionedCall", {},
                                         std::move(attrs)));
    for (Node* b : before) graph.AddControlInput(n, b);
    before = {n};
  }
  if (before.empty()) return OkStatus();
  ASSIGN_OR_RETURN(Node * init, graph.Add(graph.FreeName("init"), "NoOp", {}));
  for (Node* b : before) graph.AddControlInput(init, b);
  TensorInfo info;
  info.kind = TensorInfo::Kind::kDense;
  info.name = init->name();
  meta.signatures[std::string(kInitSignature)].outputs[std::string(kInitSignature)] = info;
  return OkStatus();
}

}  // namespace

StatusOr<LiteModel> ReadLiteFile(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, MapFile(path));
  auto model = ReadTflite(file->bytes(), file);
  if (!model.ok()) return Prefix(model.status(), absl::StrCat(path, ": "));
  return model;
}

std::vector<LiteSignature> LiteSignaturesOf(const LiteModel& model) {
  if (!model.signatures.empty()) return model.signatures;
  LiteSignature s;
  s.key = "serving_default";
  const LiteSubgraph& main = model.subgraphs[0];
  // Names that several tensors have get a number behind them.
  const auto name = [&](const std::vector<int32_t>& from, auto& to) {
    absl::flat_hash_map<std::string, int32_t> taken;
    absl::flat_hash_map<std::string, int> next;
    for (const int32_t i : from) {
      const std::string& stated = main.tensors[static_cast<size_t>(i)].name;
      const std::string base = stated.empty() ? absl::StrCat("tensor_", i) : stated;
      std::string free = base;
      while (taken.contains(free) && taken[free] != i) free = absl::StrCat(base, "_", ++next[base]);
      if (taken.emplace(free, i).second) to.emplace_back(std::move(free), i);
    }
  };
  name(main.inputs, s.inputs);
  name(main.outputs, s.outputs);
  return {s};
}

StatusOr<MetaGraph> MetaGraphOfLite(const LiteModel& model) {
  ASSIGN_OR_RETURN(const LiteFunctions functions, ImportLite(model));
  LiteResources resources;
  for (const std::string& name : functions.names) {
    FindVariableTypes(*functions.library->Find(name)->body, resources);
  }
  for (const std::string& name : functions.names) {
    const Status lowered = LowerFunction(*functions.library->Find(name), resources);
    if (!lowered.ok()) return Prefix(lowered, absl::StrCat("subgraph '", name, "': "));
  }
  MetaGraph meta;
  meta.tags = {"serve"};
  meta.graph = std::make_unique<Graph>(functions.library);
  for (const LiteSignature& s : LiteSignaturesOf(model)) {
    const Status added = AddSignature(s, model, functions, meta);
    if (!added.ok()) return Prefix(added, absl::StrCat("signature '", s.key, "': "));
  }
  RETURN_IF_ERROR(AddInit(resources, meta));
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
