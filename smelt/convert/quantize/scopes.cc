// What the signatures that are quantized reach.
#include <algorithm>

#include "absl/strings/match.h"
#include "smelt/base/suggest.h"
#include "smelt/convert/quantize/quantize.h"
#include "smelt/wire/saved_model/object_graph.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt::quantize {
namespace {

Status AddResults(const MetaGraph& meta, const Signature& signature, std::vector<Endpoint>* out) {
  for (const auto* infos : {&signature.outputs, &signature.inputs}) {
    for (const auto& [key, info] : *infos) {
      for (const std::string& name : TensorNames(info)) {
        ASSIGN_OR_RETURN(const Endpoint e, meta.graph->FindEndpoint(name));
        out->push_back(e);
      }
    }
  }
  return OkStatus();
}

absl::flat_hash_set<const Node*> Reached(const std::vector<Endpoint>& from) {
  absl::flat_hash_set<const Node*> seen;
  std::vector<const Node*> stack;
  const auto visit = [&](const Node* n) {
    if (seen.insert(n).second) stack.push_back(n);
  };
  for (const Endpoint& e : from) visit(e.node);
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    for (const Endpoint& e : n->inputs()) visit(e.node);
    for (const Node* control : n->control_inputs()) visit(control);
  }
  return seen;
}

Scope FunctionScope(Function* f) {
  Scope s;
  s.function = f;
  s.graph = f->body.get();
  for (const Node* n : f->body->Nodes()) s.nodes.insert(n);
  s.results = f->FlatResults();
  for (const auto& [name, node] : f->control_results) s.results.push_back({node, -1});
  return s;
}

}  // namespace

bool Scope::IsResult(Endpoint e) const {
  return std::find(results.begin(), results.end(), e) != results.end();
}

StatusOr<std::vector<Scope>> FindScopes(Conversion& c, const std::vector<std::string>& signatures) {
  const MetaGraph& meta = *c.meta;
  Scope main;
  main.graph = meta.graph.get();
  std::vector<Endpoint> from;
  for (const std::string& key : signatures) {
    auto it = meta.signatures.find(key);
    if (it == meta.signatures.end()) {
      std::vector<std::string> names;
      for (const auto& [name, s] : meta.signatures) names.push_back(name);
      return NotFound("signature key \"", key, "\" is not in the model", Suggest(key, names),
                      ". Signatures: ", KeySetText(names));
    }
    RETURN_IF_ERROR(AddResults(meta, it->second, &from));
  }
  // Tensors of the other signatures must stay too.
  for (const auto& [key, signature] : meta.signatures) {
    if (key == kInitSignature) continue;
    RETURN_IF_ERROR(AddResults(meta, signature, &main.results));
  }
  ASSIGN_OR_RETURN(const auto captured, CapturedConstants(meta));
  for (const Node* n : main.graph->Nodes()) {
    if (captured.contains(n->name())) main.results.push_back({main.graph->Find(n->name()), -1});
  }
  main.nodes = Reached(from);
  std::vector<Function*> functions;
  absl::flat_hash_set<const Function*> seen;
  const auto visit = [&](absl::string_view name) {
    Function* f = c.library().Find(name);
    if (f != nullptr && f->body != nullptr && seen.insert(f).second) functions.push_back(f);
  };
  // In the order of the graph, so that the same model gives the same bytes.
  for (const Node* n : main.graph->Nodes()) {
    if (main.nodes.contains(n)) ForEachCallee(c.library(), *n, visit);
  }
  for (size_t i = 0; i < functions.size(); ++i) {
    for (const Node* n : functions[i]->body->Nodes()) ForEachCallee(c.library(), *n, visit);
  }
  std::vector<Scope> scopes;
  scopes.push_back(std::move(main));
  for (Function* f : functions) scopes.push_back(FunctionScope(f));
  return scopes;
}

StatusOr<absl::flat_hash_set<std::string>> CapturedConstants(const MetaGraph& meta) {
  absl::flat_hash_set<std::string> names;
  if (meta.object_graph.empty()) return names;
  ASSIGN_OR_RETURN(const ObjectGraph objects, ParseObjectGraph(meta.object_graph));
  for (const ObjectNode& node : objects.nodes) {
    if (node.kind == ObjectNode::Kind::kConstant) names.insert(node.operation);
  }
  return names;
}

bool TrainedWithFakeQuant(const MetaGraph& meta) {
  const auto any = [](const Graph& g) {
    for (const Node* n : g.Nodes()) {
      if (absl::StartsWith(n->op(), "FakeQuant")) return true;
    }
    return false;
  };
  if (any(*meta.graph)) return true;
  for (const Function* f : meta.graph->library()->Functions()) {
    if (f->body != nullptr && any(*f->body)) return true;
  }
  return false;
}

TensorKey KeyOf(const Scope& scope, Endpoint e) {
  return {scope.name(), absl::StrCat(e.node->name(), ":", e.port)};
}

}  // namespace smelt::quantize
