#include "smelt/convert/variables.h"

#include <algorithm>

#include "smelt/graph/op_facts.h"
#include "smelt/wire/saved_model/object_graph.h"
#include "smelt/wire/saved_model/object_restore.h"

namespace smelt {

std::vector<ModelVariable*> ModelVariables::OfArgument(const Function& function, int arg) const {
  const std::vector<Endpoint> args = function.FlatArguments();
  if (arg < 0 || arg >= std::ssize(args)) return {};
  return Of(args[static_cast<size_t>(arg)]);
}

std::vector<ModelVariable*> ModelVariables::Of(Endpoint handle) const {
  std::vector<ModelVariable*> out;
  for (const int number : flow_.Of(handle)) {
    ModelVariable* v = of_handle_[static_cast<size_t>(number)];
    if (std::ranges::find(out, v) == out.end()) out.push_back(v);
  }
  return out;
}

StatusOr<Tensor> ModelVariables::Value(const ModelVariable& v) const {
  if (v.key.empty() || bundle_ == nullptr) {
    return NotFound("variable '", v.name, "' is not in the checkpoint");
  }
  return bundle_->Read(v.key);
}

PartialShape ModelVariables::StoredShape(const ModelVariable& v) const {
  if (v.key.empty() || bundle_ == nullptr) return v.shape;
  auto entry = bundle_->Find(v.key);
  return entry.ok() ? PartialShape((*entry)->shape) : v.shape;
}

namespace {

Status RetypeListElement(Graph& graph, Node* n, absl::string_view attr, size_t i, Dtype dtype) {
  auto types = n->Get<std::vector<Dtype>>(attr, {});
  if (i >= types.size()) return Internal("node '", n->name(), "' has no type ", i);
  types[i] = dtype;
  n->AttrsToChange().Set(attr, types);
  return graph.ResolveTypes(n);
}

// Retypes the identities that pass a tensor on from a RestoreV2 to an assignment, which reads
// `from`. Returns the RestoreV2's output.
StatusOr<Endpoint> RetypeIdentities(Graph& graph, Endpoint from, Dtype dtype) {
  for (; from.node->Is(kIdentityOps); from = from.node->input(from.port)) {
    if (from.node->Is("IdentityN")) {
      RETURN_IF_ERROR(RetypeListElement(graph, from.node, "T", from.port, dtype));
      continue;
    }
    from.node->AttrsToChange().Set("T", dtype);
    RETURN_IF_ERROR(graph.ResolveTypes(from.node));
  }
  return from;
}

}  // namespace

Status ModelVariables::RetypeRestore(const HandleUse& use, Dtype dtype) {
  Graph& graph = use.function ? *use.function->body : *meta_.graph;
  ASSIGN_OR_RETURN(const Endpoint e, RetypeIdentities(graph, use.node->input(1), dtype));
  RETURN_IF_ERROR(RetypeListElement(graph, e.node, "dtypes", e.port, dtype));
  use.node->AttrsToChange().Set("dtype", dtype);
  return graph.ResolveTypes(use.node);
}

Status ModelVariables::AssignInRestore(const ModelVariable& v, Dtype dtype,
                                       const MakeValue& value) {
  ASSIGN_OR_RETURN(Tensor stored, Value(v));
  ASSIGN_OR_RETURN(stored, value(stored));
  Graph& main = *meta_.graph;
  for (const HandleUse& use : v.restores) {
    Graph& graph = use.function ? *use.function->body : main;
    Node* constant = graph.AddConst(graph.FreeName(use.node->name() + "/narrow"), stored);
    graph.SetInput(use.node, 1, {constant, 0});
    use.node->AttrsToChange().Set("dtype", dtype);
    RETURN_IF_ERROR(graph.ResolveTypes(use.node));
  }
  // The restore op need not know every handle: loaders find the others' values by their keys.
  Node* restore = meta_.saver ? main.Find(meta_.saver->restore_op_name) : nullptr;
  if (restore == nullptr) return OkStatus();
  for (Node* handle : v.handles) {
    AttrMap attrs;
    attrs.Set("dtype", dtype);
    Node* constant = main.AddConst(main.FreeName(handle->name() + "/narrow"), stored);
    ASSIGN_OR_RETURN(Node * assign,
                     main.Add(main.FreeName(handle->name() + "/assign_narrow"), "AssignVariableOp",
                              {{handle, 0}, {constant, 0}}, std::move(attrs)));
    main.AddControlInput(restore, assign);
  }
  return OkStatus();
}

Status ModelVariables::RetypeSaves(const ModelVariable& v, Dtype dtype) {
  for (const HandleUse& use : v.saves) {
    use.node->AttrsToChange().Set("dtype", dtype);
    RETURN_IF_ERROR((use.function ? *use.function->body : *meta_.graph).ResolveTypes(use.node));
  }
  for (const HandleUse& use : v.save_path) {
    Graph& graph = use.function ? *use.function->body : *meta_.graph;
    if (use.node->Is("SaveV2")) {
      // Inputs: prefix, names, slices, then the tensors.
      RETURN_IF_ERROR(RetypeListElement(graph, use.node, "dtypes", use.input - 3, dtype));
    } else {
      use.node->AttrsToChange().Set("T", dtype);
      RETURN_IF_ERROR(graph.ResolveTypes(use.node));
    }
  }
  return OkStatus();
}

std::string ModelVariable::WhyFixed() const {
  if (key.empty()) return "not in the checkpoint";
  if (!others.empty()) {
    return absl::StrCat("changed by '", others[0].node->name(), "' (", others[0].node->op(), ")");
  }
  for (const ModelVariable* slot : slots) {
    if (slot->others.empty()) continue;
    const Node& n = *slot->others[0].node;
    return absl::StrCat("its optimizer's '", slot->name, "' is changed by '", n.name(), "' (",
                        n.op(), ")");
  }
  return "";
}

Status ModelVariables::CastBack(const HandleUse& use, Dtype dtype) {
  Graph& graph = use.function ? *use.function->body : *meta_.graph;
  const Dtype before = use.node->Type("dtype");
  if (before == dtype) return OkStatus();
  use.node->AttrsToChange().Set("dtype", dtype);
  RETURN_IF_ERROR(graph.ResolveTypes(use.node));
  AttrMap attrs;
  attrs.Set("SrcT", dtype);
  attrs.Set("DstT", before);
  ASSIGN_OR_RETURN(Node * cast, graph.Add(absl::StrCat(use.node->name(), "/", DtypeName(before)),
                                          "Cast", {{use.node, 0}}, std::move(attrs)));
  graph.ReplaceOtherUses({use.node, 0}, {cast, 0});
  if (use.function == nullptr) return OkStatus();
  for (auto& result : use.function->results) {
    for (Endpoint& e : result) {
      if (e.node == use.node) e = {cast, 0};
    }
  }
  return OkStatus();
}

Status ModelVariables::SetStored(ModelVariable& v, Dtype dtype, MakeValue value,
                                 MakeValue slot_value) {
  if (const std::string why = v.WhyFixed(); !why.empty()) {
    return Internal("variable '", v.name, "' cannot be stored as ", DtypeName(dtype), ": ", why);
  }
  const Dtype before = v.dtype;
  v.dtype = dtype;
  for (ModelVariable* slot : v.slots) {
    if (slot->dtype == dtype) continue;
    RETURN_IF_ERROR(SetStored(*slot, dtype, slot_value, slot_value));
    for (const auto* uses : {&slot->reads, &slot->lookups}) {
      for (const HandleUse& use : *uses) RETURN_IF_ERROR(CastBack(use, dtype));
    }
  }
  for (const std::string& entry : v.slot_entries) stored_[entry] = {dtype, slot_value};
  for (Node* handle : v.handles) handle->AttrsToChange().Set("dtype", dtype);
  if (in_graph_) {
    RETURN_IF_ERROR(AssignInRestore(v, dtype, value));
  } else {
    for (const HandleUse& use : v.restores) RETURN_IF_ERROR(RetypeRestore(use, dtype));
  }
  RETURN_IF_ERROR(RetypeSaves(v, dtype));
  for (const HandleUse& use : v.initializers) {
    Graph& graph = use.function ? *use.function->body : *meta_.graph;
    AttrMap attrs;
    attrs.Set("SrcT", before);
    attrs.Set("DstT", dtype);
    ASSIGN_OR_RETURN(Node * cast, graph.Add(use.node->name() + "/cast", "Cast",
                                            {use.node->inputs()[1]}, std::move(attrs)));
    graph.SetInput(use.node, 1, {cast, 0});
    use.node->AttrsToChange().Set("dtype", dtype);
    RETURN_IF_ERROR(graph.ResolveTypes(use.node));
  }
  for (const std::string& copy : v.copies) stored_[copy] = {dtype, value};
  stored_[v.key] = {dtype, std::move(value)};
  return OkStatus();
}

Status ModelVariables::UpdateObjectGraph() {
  if (stored_.empty() || bundle_ == nullptr || meta_.object_graph.empty()) return OkStatus();
  std::map<std::string, Dtype> types;
  for (const auto& [key, stored] : stored_) types[key] = stored.dtype;
  ASSIGN_OR_RETURN(meta_.object_graph,
                   RetypeVariableObjects(meta_.object_graph, checkpoint_graph_, types));
  return OkStatus();
}

Status ModelVariables::WriteBundle(const std::string& prefix) const {
  if (bundle_ == nullptr) return FailedPrecondition("the model has no checkpoint");
  BundleWriterOptions options;
  options.data_alignment = 64;
  ASSIGN_OR_RETURN(auto writer, BundleWriter::Create(prefix, options));
  for (const std::string& name : bundle_->names()) {
    if (stripped_.dropped.contains(name)) continue;
    if (name == kCheckpointObjectGraph && !stripped_.object_graph.empty()) {
      RETURN_IF_ERROR(writer->Add(name, Tensor::Scalar<std::string>(stripped_.object_graph)));
      continue;
    }
    ASSIGN_OR_RETURN(const BundleEntry* entry, bundle_->Find(name));
    auto it = stored_.find(name);
    if (it == stored_.end() && entry->partitioned()) {
      for (const TensorSlice& slice : entry->slices) {
        ASSIGN_OR_RETURN(const Tensor part, bundle_->ReadSlice(name, slice));
        RETURN_IF_ERROR(writer->AddSlice(name, entry->shape, slice, part));
      }
      continue;
    }
    ASSIGN_OR_RETURN(Tensor value, bundle_->Read(name));
    if (it != stored_.end()) {
      ASSIGN_OR_RETURN(value, it->second.value(value));
      if (value.dtype() != it->second.dtype) {
        return Internal("checkpoint entry ", name, " was to be ", DtypeName(it->second.dtype));
      }
    }
    RETURN_IF_ERROR(writer->Add(name, value));
  }
  return writer->Finish();
}

}  // namespace smelt
