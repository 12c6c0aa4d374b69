#include "smelt/optimize/instantiate.h"

#include <algorithm>

#include "smelt/graph/op_facts.h"
#include "smelt/graph/verify.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

Status FillPlaceholders(FuncAttr& f, const AttrMap& values, const std::string& where) {
  if (f.attrs == nullptr || f.attrs->empty()) return OkStatus();
  AttrMap inner = *f.attrs;
  RETURN_IF_ERROR(FillPlaceholders(inner, values, where));
  f.attrs = std::make_shared<AttrMap>(std::move(inner));
  return OkStatus();
}

}  // namespace

Status FillPlaceholders(AttrMap& attrs, const AttrMap& values, const std::string& where) {
  for (auto& [name, attr] : attrs.EntriesToChange()) {
    if (const auto* p = attr.get<PlaceholderAttr>()) {
      const Attr* v = values.Find(p->name);
      if (v == nullptr) {
        return InvalidArgument("Could not instantiate ", where, ": attribute '", p->name,
                               "' is not given");
      }
      attr = Attr(*v);
    } else if (auto* f = std::get_if<FuncAttr>(&attr.value())) {
      RETURN_IF_ERROR(FillPlaceholders(*f, values, where));
    } else if (auto* list = std::get_if<std::vector<FuncAttr>>(&attr.value())) {
      for (FuncAttr& each : *list) RETURN_IF_ERROR(FillPlaceholders(each, values, where));
    }
  }
  return OkStatus();
}

Status FillBody(Graph& body, const AttrMap& values, const std::string& where) {
  for (Node* n : body.Nodes()) RETURN_IF_ERROR(FillPlaceholders(n->AttrsToChange(), values, where));
  for (Node* n : body.Nodes()) RETURN_IF_ERROR(body.ResolveTypes(n));
  return OkStatus();
}

bool HasTypeAttr(const OpDef& signature) {
  const auto typed = [](const ArgDef& a) { return !a.type_attr.empty(); };
  return std::ranges::any_of(signature.inputs, typed) ||
         std::ranges::any_of(signature.outputs, typed);
}

bool HasPlaceholders(const Graph& body) {
  for (const Node* n : body.Nodes()) {
    for (const auto& [name, attr] : n->attrs()) {
      if (attr.get<PlaceholderAttr>()) return true;
    }
    bool instantiates = false;
    ForEachFunc(n->attrs(), [&](const FuncAttr& f) {
      instantiates = instantiates || (f.attrs && !f.attrs->empty());
    });
    if (instantiates) return true;
  }
  return false;
}

Status Instantiable::Check(const Function& f, const AttrMap* attrs) {
  const auto [known, first] = known_.try_emplace(&f);
  if (first) {
    known->second.valid = VerifyFunction(f);
    known->second.holes = HasTypeAttr(f.signature) || HasPlaceholders(*f.body);
  }
  RETURN_IF_ERROR(known->second.valid);
  if (!known->second.holes) return OkStatus();
  static const AttrMap& none = *new AttrMap();
  const AttrMap& given = attrs == nullptr ? none : *attrs;
  RETURN_IF_ERROR(ArgTypes(f.signature.inputs, f.signature, given).status());
  RETURN_IF_ERROR(ArgTypes(f.signature.outputs, f.signature, given).status());
  ASSIGN_OR_RETURN(const auto copy, f.Clone(f.name()));
  return FillBody(*copy->body, given, f.name());
}

bool OrdersEffect(const Node* n, size_t most) {
  absl::flat_hash_set<const Node*> seen{n};
  std::vector<const Node*> stack{n};
  while (!stack.empty()) {
    const Node* m = stack.back();
    stack.pop_back();
    // The definition of a call does not know what its function does.
    if (seen.size() > most || HasEffect(*m) || IsPartitionedCall(*m)) return true;
    for (const Node* c : m->control_inputs()) {
      if (seen.insert(c).second) stack.push_back(c);
    }
    for (const Endpoint& e : m->inputs()) {
      if (seen.insert(e.node).second) stack.push_back(e.node);
    }
  }
  return false;
}

StatusOr<std::unique_ptr<Graph>> Instantiate(const Function& function, const AttrMap* attrs) {
  RETURN_IF_ERROR(VerifyFunction(function));
  ASSIGN_OR_RETURN(auto copy, function.Clone(function.name()));
  Graph& g = *copy->body;
  if (attrs && HasPlaceholders(g)) RETURN_IF_ERROR(FillBody(g, *attrs, function.name()));
  // List arguments become one argument per element.
  int index = 0;
  for (Node* a : copy->args) {
    if (a->num_outputs() == 1 && a->attrs().Find("T") != nullptr) {
      a->AttrsToChange().Set("index", index++);
      continue;
    }
    for (int i = 0; i < a->num_outputs(); ++i) {
      AttrMap arg_attrs;
      arg_attrs.Set("T", a->output_types[i]);
      arg_attrs.Set("index", index++);
      ASSIGN_OR_RETURN(Node * element, g.Add(a->name(), "_Arg", {}, std::move(arg_attrs)));
      g.ReplaceAllUses({a, i}, {element, 0});
      for (auto& r : copy->results) {
        for (Endpoint& e : r) {
          if (e == Endpoint{a, i}) e = {element, 0};
        }
      }
    }
    g.ReplaceControlUses(a, nullptr);
    g.Remove(a);
  }
  index = 0;
  for (Endpoint e : copy->FlatResults()) {
    AttrMap ret_attrs;
    ret_attrs.Set("T", BaseType(e.node->output_types[e.port]));
    ret_attrs.Set("index", index++);
    RETURN_IF_ERROR(g.Add("_retval", "_Retval", {e}, std::move(ret_attrs)).status());
  }
  for (const auto& [name, node] : copy->control_results) {
    if (OrdersEffect(node)) AddRoot(node);
  }
  g.Prune(Roots(g));
  return std::move(copy->body);
}

}  // namespace smelt
