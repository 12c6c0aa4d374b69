// Functions and their library (graph.h).
#include "smelt/graph/graph.h"

namespace smelt {

std::vector<Endpoint> Function::FlatArguments() const {
  std::vector<Endpoint> flat;
  for (Node* a : args) {
    for (int port = 0; port < a->num_outputs(); ++port) flat.push_back({a, port});
  }
  return flat;
}

int Function::FlatPosition(Endpoint argument) const {
  int first = 0;
  for (const Node* a : args) {
    const bool has = argument.port >= 0 && argument.port < a->num_outputs();
    if (a == argument.node) return has ? first + argument.port : -1;
    first += a->num_outputs();
  }
  return -1;
}

std::vector<Endpoint> Function::FlatResults() const {
  std::vector<Endpoint> flat;
  for (const auto& r : results) flat.insert(flat.end(), r.begin(), r.end());
  return flat;
}

StatusOr<std::unique_ptr<Function>> Function::Clone(absl::string_view new_name) const {
  auto f = std::make_unique<Function>();
  f->signature = signature;
  f->signature.name = std::string(new_name);
  f->attrs = attrs;
  f->arg_attrs = arg_attrs;
  f->extra = extra;
  f->body = std::make_unique<Graph>(body->library());
  ASSIGN_OR_RETURN(const NodeCopies map, f->body->CopyFrom(*body, ""));
  for (Node* a : args) f->args.push_back(map.Of(a));
  for (const auto& r : results) {
    auto& out = f->results.emplace_back();
    for (Endpoint e : r) out.push_back({map.Of(e.node), e.port});
  }
  for (const auto& [name, node] : control_results)
    f->control_results.emplace_back(name, map.Of(node));
  return f;
}

Function* FunctionLibrary::Find(absl::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Status FunctionLibrary::Add(std::unique_ptr<Function> function) {
  auto [it, added] = by_name_.try_emplace(function->name(), function.get());
  if (!added) return AlreadyExists("Function '", function->name(), "' is defined twice");
  // Not an owner: a body that owned its library would keep both alive for ever.
  function->body->library_ = std::shared_ptr<FunctionLibrary>(std::shared_ptr<void>(), this);
  functions_.push_back(std::move(function));
  return OkStatus();
}

void FunctionLibrary::Remove(absl::string_view name) {
  auto it = by_name_.find(name);
  if (it == by_name_.end()) return;
  if (auto declared = declared_.find(name); declared != declared_.end()) declared_.erase(declared);
  // `name` may be the function's own: it is not read after this.
  std::erase_if(functions_, [&](const auto& f) { return f.get() == it->second; });
  by_name_.erase(it);
}

Status FunctionLibrary::Rename(absl::string_view from, absl::string_view to) {
  Function* f = Find(from);
  if (f == nullptr) return NotFound("Function '", from, "' is not defined");
  if (!by_name_.try_emplace(std::string(to), f).second) {
    return AlreadyExists("Function '", to, "' is defined twice");
  }
  declared_.erase(std::string(from));
  by_name_.erase(std::string(from));
  f->signature.name = std::string(to);
  return OkStatus();
}

std::vector<Function*> FunctionLibrary::Functions() const {
  std::vector<Function*> out;
  out.reserve(functions_.size());
  for (const auto& f : functions_) out.push_back(f.get());
  return out;
}

std::string FunctionLibrary::FreeName(absl::string_view base) const {
  std::string name(base);
  for (int i = 1; by_name_.contains(name) || FindOpDef(name) != nullptr; ++i) {
    name = absl::StrCat(base, "_", i);
  }
  return name;
}

void FunctionLibrary::AddOp(OpDef def) {
  if (FindOpDef(def.name) != nullptr) return;
  auto name = def.name;
  ops_[name] = std::make_unique<OpDef>(std::move(def));
}

void FunctionLibrary::Declare(const OpDef& signature) {
  declared_[signature.name] = std::make_unique<OpDef>(signature);
}

const OpDef* FunctionLibrary::FindOp(absl::string_view name, OpName op) const {
  if (auto it = by_name_.find(name); it != by_name_.end()) return &it->second->signature;
  if (auto it = declared_.find(name); it != declared_.end()) return it->second.get();
  if (auto it = ops_.find(name); it != ops_.end()) return it->second.get();
  return op.unknown() ? FindOpDef(name) : DefinitionOf(op);
}

}  // namespace smelt
