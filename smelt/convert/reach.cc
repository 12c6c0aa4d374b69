// What the signatures reach, and what nobody does.
#include "absl/container/flat_hash_set.h"
#include "smelt/convert/stages.h"
#include "smelt/wire/object_graph.h"

namespace smelt {
namespace {

void VisitTensors(const TensorInfo& info, const std::function<void(const std::string&)>& visit) {
  for (const std::string* name :
       {&info.name, &info.values_name, &info.indices_name, &info.dense_shape_name}) {
    if (!name->empty()) visit(*name);
  }
  for (const TensorInfo& component : info.components) VisitTensors(component, visit);
}

}  // namespace

std::vector<Node*> ServedNodes(const MetaGraph& meta) {
  std::vector<Node*> reached;
  absl::flat_hash_set<const Node*> seen;
  const auto visit = [&](Node* n) {
    if (seen.insert(n).second) reached.push_back(n);
  };
  for (const auto& [key, signature] : meta.signatures) {
    if (key == "__saved_model_init_op") continue;
    for (const auto& [name, info] : signature.outputs) {
      VisitTensors(info, [&](const std::string& tensor) {
        if (auto e = meta.graph->FindEndpoint(tensor); e.ok()) visit(e->node);
      });
    }
  }
  for (size_t i = 0; i < reached.size(); ++i) {
    const Node* n = reached[i];
    for (const Endpoint& e : n->inputs) visit(e.node);
    for (Node* control : n->control_inputs) visit(control);
  }
  return reached;
}

std::vector<std::string> ServedFunctions(const MetaGraph& meta) {
  const FunctionLibrary& library = *meta.graph->library();
  std::vector<std::string> reached;
  absl::flat_hash_set<std::string> seen;
  const auto visit = [&](const std::string& name) {
    if (library.Find(name) != nullptr && seen.insert(name).second) reached.push_back(name);
  };
  for (const Node* n : ServedNodes(meta)) {
    visit(n->op());
    ForEachFunc(n->attrs(), [&](const FuncAttr& f) { visit(f.name); });
  }
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
