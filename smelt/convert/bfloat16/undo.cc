#include <algorithm>

#include "smelt/convert/revert.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/wire/saved_model/object_graph.h"

namespace smelt {
namespace {

StatusOr<Tensor> Widened(const Tensor& t) {
  if (t.dtype() != Dtype::kBfloat16) return t;
  return ToFloat(t, HeapAllocator());
}

// Replaces bfloat16 in an attribute. Whether there was any.
StatusOr<bool> WidenAttr(Attr& attr) {
  if (auto* t = std::get_if<Dtype>(&attr.value()); t && *t == Dtype::kBfloat16) {
    *t = Dtype::kFloat;
    return true;
  }
  bool found = false;
  if (auto* list = std::get_if<std::vector<Dtype>>(&attr.value())) {
    for (Dtype& t : *list) {
      if (t != Dtype::kBfloat16) continue;
      t = Dtype::kFloat;
      found = true;
    }
  }
  if (auto* v = std::get_if<std::shared_ptr<const TensorValue>>(&attr.value());
      v && *v && (*v)->dtype == Dtype::kBfloat16) {
    ASSIGN_OR_RETURN(const Tensor t, (*v)->Materialize());
    ASSIGN_OR_RETURN(const Tensor wide, Widened(t));
    attr = Attr(wide);
    found = true;
  }
  return found;
}

StatusOr<int> WidenGraph(Graph& g) {
  int changed = 0;
  for (Node* n : g.Nodes()) {
    bool found = false;
    for (auto& [name, attr] : n->AttrsToChange().EntriesToChange()) {
      ASSIGN_OR_RETURN(const bool here, WidenAttr(attr));
      found = found || here;
    }
    changed += found;
  }
  // Types of calls follow the functions', which may be changed later than their callers.
  for (Node* n : g.Nodes()) RETURN_IF_ERROR(g.ResolveTypes(n));
  return changed;
}

bool HasBfloat16(const OpDef& signature) {
  const auto is = [](const ArgDef& a) { return a.type == Dtype::kBfloat16; };
  return std::ranges::any_of(signature.inputs, is) || std::ranges::any_of(signature.outputs, is);
}

// A signature or concrete function whose interface has bfloat16, or empty.
StatusOr<std::string> NativeBfloat16(Conversion& c) {
  for (const auto& [name, s] : c.meta->signatures) {
    for (const auto* side : {&s.inputs, &s.outputs}) {
      for (const auto& [key, info] : *side) {
        if (info.dtype == Dtype::kBfloat16) return absl::StrCat("signature '", name, "'");
      }
    }
  }
  if (c.meta->object_graph.empty()) return std::string();
  ASSIGN_OR_RETURN(const ObjectGraph objects, ParseObjectGraph(c.meta->object_graph));
  for (const auto& [name, concrete] : objects.concrete_functions) {
    const Function* f = c.library().Find(name);
    if (f != nullptr && HasBfloat16(f->signature)) return absl::StrCat("function '", name, "'");
  }
  return std::string();
}

}  // namespace

Status UndoBfloat16(Conversion& c) {
  ASSIGN_OR_RETURN(const std::string native, NativeBfloat16(c));
  if (!native.empty()) {
    c.records.AddNote("revert",
                      absl::StrCat("bfloat16 stays: ", native, " has it in its interface"));
    return OkStatus();
  }
  // The variables first: their handles and restores are found by the types that they have.
  ASSIGN_OR_RETURN(ModelVariables * variables, c.Variables());
  int stored = 0;
  for (const auto& v : variables->all()) {
    if (v->dtype != Dtype::kBfloat16 || !v->WhyFixed().empty()) continue;
    RETURN_IF_ERROR(variables->SetStored(*v, Dtype::kFloat, Widened, Widened));
    ++stored;
  }
  for (Function* f : c.library().Functions()) {
    for (auto* args : {&f->signature.inputs, &f->signature.outputs}) {
      for (ArgDef& a : *args) {
        if (a.type == Dtype::kBfloat16) a.type = Dtype::kFloat;
      }
    }
  }
  int changed = 0;
  for (Function* f : c.library().Functions()) {
    if (f->body == nullptr) continue;
    auto n = WidenGraph(*f->body);
    if (!n.ok()) return Prefix(n.status(), absl::StrCat("In function '", f->name(), "': "));
    changed += *n;
  }
  ASSIGN_OR_RETURN(const int n, WidenGraph(*c.meta->graph));
  changed += n;
  if (changed > 0) {
    c.records.AddNote("revert", absl::StrCat(changed, " bfloat16 nodes and ", stored,
                                             " variables are float32 again"));
  }
  return OkStatus();
}

}  // namespace smelt
