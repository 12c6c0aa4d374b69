// What the signatures reach, and what nobody does.
#include "absl/container/flat_hash_set.h"
#include "smelt/convert/stages.h"
#include "smelt/wire/saved_model/object_graph.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

template <typename Info, typename Visit>
void VisitTensorNames(Info& info, const Visit& visit) {
  const auto named = [&](auto& name) {
    if (!name.empty()) visit(name);
  };
  switch (info.kind) {
    case TensorInfo::Kind::kNone:
      break;
    case TensorInfo::Kind::kDense:
      named(info.name);
      break;
    case TensorInfo::Kind::kSparse:
      named(info.values_name);
      named(info.indices_name);
      named(info.dense_shape_name);
      break;
    case TensorInfo::Kind::kComposite:
      for (auto& component : info.components) VisitTensorNames(component, visit);
  }
}

// Nodes of the main graph that the signatures' outputs need.
std::vector<Node*> NeededNodes(const MetaGraph& meta,
                               const std::vector<const Signature*>& signatures) {
  std::vector<Node*> reached;
  absl::flat_hash_set<const Node*> seen;
  const auto visit = [&](Node* n) {
    if (seen.insert(n).second) reached.push_back(n);
  };
  for (const Signature* signature : signatures) {
    for (const auto& [name, info] : signature->outputs) {
      for (const std::string& tensor : TensorNames(info)) {
        if (auto e = meta.graph->FindEndpoint(tensor); e.ok()) visit(e->node);
      }
    }
  }
  for (size_t i = 0; i < reached.size(); ++i) {
    const Node* n = reached[i];
    for (const Endpoint& e : n->inputs()) visit(e.node);
    for (Node* control : n->control_inputs()) visit(control);
  }
  return reached;
}

}  // namespace

void TensorNames(TensorInfo& info, std::vector<std::string*>* names) {
  VisitTensorNames(info, [&](std::string& name) { names->push_back(&name); });
}

std::vector<std::string> TensorNames(const TensorInfo& info) {
  std::vector<std::string> names;
  VisitTensorNames(info, [&](const std::string& name) { names.push_back(name); });
  return names;
}

std::vector<Node*> ServedNodes(const MetaGraph& meta) {
  std::vector<const Signature*> served;
  for (const auto& [key, signature] : meta.signatures) {
    if (key != kInitSignature) served.push_back(&signature);
  }
  return NeededNodes(meta, served);
}

std::vector<Node*> NodesOf(const MetaGraph& meta, const Signature& signature) {
  return NeededNodes(meta, {&signature});
}

std::vector<std::string> ServedFunctions(const MetaGraph& meta,
                                         const absl::flat_hash_set<std::string>& except) {
  const FunctionLibrary& library = *meta.graph->library();
  std::vector<std::string> reached;
  absl::flat_hash_set<std::string> seen;
  const auto visit = [&](absl::string_view name) {
    if (except.contains(name) || library.Find(name) == nullptr) return;
    if (seen.emplace(name).second) reached.emplace_back(name);
  };
  for (const Node* n : ServedNodes(meta)) ForEachCallee(library, *n, visit);
  for (size_t i = 0; i < reached.size(); ++i) {
    const Function* f = library.Find(reached[i]);
    if (f->body == nullptr) continue;
    for (const std::string& callee : CalledFunctions(*f->body)) visit(callee);
  }
  return reached;
}

Status RemoveUnusedFunctions(Conversion& c) {
  FunctionLibrary& library = c.library();
  absl::flat_hash_set<std::string> used;
  std::vector<std::string> stack;
  const auto use = [&](const std::string& name) {
    if (library.Find(name) != nullptr && used.insert(name).second) stack.push_back(name);
  };
  for (const std::string& name : CalledFunctions(*c.meta->graph)) use(name);
  for (const auto& [function, alias] : c.meta->function_aliases) use(function);
  if (!c.meta->object_graph.empty()) {
    ASSIGN_OR_RETURN(const ObjectGraph objects, ParseObjectGraph(c.meta->object_graph));
    for (const auto& [name, concrete] : objects.concrete_functions) use(name);
  }
  while (!stack.empty()) {
    const std::string name = stack.back();
    stack.pop_back();
    const Function* f = library.Find(name);
    if (f->body != nullptr) {
      for (const std::string& callee : CalledFunctions(*f->body)) use(callee);
    }
    for (const auto& [function, gradient] : library.gradients) {
      if (function == name) use(gradient);
    }
  }
  for (const auto& [op, gradient] : library.registered_gradients) used.insert(gradient);
  for (const Function* f : library.Functions()) {
    if (!used.contains(f->name())) library.Remove(f->name());
  }
  return OkStatus();
}

}  // namespace smelt
