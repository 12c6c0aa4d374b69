#include "smelt/lite/prepare/effects.h"

#include <vector>

namespace smelt {
namespace {

// Stateful by their definitions.
constexpr OpSet kOnlyReadsState = {
    "ReadVariableOp",     "VarHandleOp",        "VarIsInitializedOp", "HashTable",
    "HashTableV2",        "LookupTableFind",    "LookupTableFindV2",  "LookupTableSize",
    "LookupTableSizeV2",  "RandomUniform",      "RandomUniformInt",   "RandomStandardNormal",
    "Multinomial",        "tfl.read_variable",  "tfl.var_handle",     "tfl.hashtable",
    "tfl.hashtable_find", "tfl.hashtable_size", "tfl.random_uniform", "tfl.random_standard_normal",
    "tfl.multinomial"};

constexpr int kMostCalls = 200;

}  // namespace

Effects::Kind Effects::OfFunction(const std::string& name) {
  const Function* f = library_.Find(name);
  if (f == nullptr || f->body == nullptr || depth_ > kMostCalls) return {true, true};
  // One that calls itself adds nothing to what it does.
  const auto [it, added] = functions_.try_emplace(name);
  if (!added) return it->second;
  Kind all;
  ++depth_;
  for (const Node* n : f->body->Nodes()) {
    const Kind kind = Of(*n);
    all.changes = all.changes || kind.changes;
    all.ordered = all.ordered || kind.ordered;
  }
  --depth_;
  functions_[name] = all;
  return all;
}

Effects::Kind Effects::Of(const Node& n) {
  if (n.Is({"_Arg", "_Retval", "NoOp"})) return {};
  if (n.Is("Assert")) return {asserts_, asserts_};
  if (n.def() == nullptr) {
    return library_.Find(n.op()) == nullptr ? Kind{true, true} : OfFunction(std::string(n.op()));
  }
  bool calls = false;
  Kind all;
  ForEachFunc(n.attrs(), [&](const FuncAttr& f) {
    calls = true;
    const Kind kind = OfFunction(f.name);
    all.changes = all.changes || kind.changes;
    all.ordered = all.ordered || kind.ordered;
  });
  if (calls) return all;
  return {n.def()->stateful && !n.Is(kOnlyReadsState), n.def()->stateful};
}

Status DropIdleOrder(Graph& graph, Effects& effects) {
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  std::vector<bool> ordered(static_cast<size_t>(graph.max_id()));
  const auto at = [&](const Node* n) { return ordered[static_cast<size_t>(n->id())]; };
  for (Node* n : order) {
    std::vector<Node*> kept;
    for (Node* before : n->control_inputs()) {
      if (at(before)) kept.push_back(before);
    }
    bool behind = effects.Ordered(*n) || !kept.empty();
    for (const Endpoint& e : n->inputs()) behind = behind || at(e.node);
    ordered[static_cast<size_t>(n->id())] = behind;
    if (kept.size() != n->control_inputs().size()) graph.SetControlInputs(n, std::move(kept));
  }
  return OkStatus();
}

}  // namespace smelt
