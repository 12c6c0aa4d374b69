#include "smelt/optimize/inline_policy.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/op_facts.h"

namespace smelt {
namespace {

// Stateful ops that a body may lose when nobody waits for them: they only read, or nothing is
// known by whether they ran.
constexpr OpSet kMayBeLost = {"ReadVariableOp",
                              "VarHandleOp",
                              "ResourceGather",
                              "ResourceGatherNd",
                              "VarIsInitializedOp",
                              "Assert",
                              "CollectiveGather",
                              "CollectiveReduce",
                              "CollectiveBcastSend",
                              "CollectiveBcastRecv",
                              "CollectiveBcastSendV2",
                              "CollectiveBcastRecvV2",
                              "NcclAllReduce",
                              "SaveV2",
                              "RestoreV2",
                              "MergeV2Checkpoints",
                              "Send",
                              "Recv",
                              "PlaceholderWithDefault",
                              "Stack",
                              "StackV2",
                              "TensorArrayV3",
                              "LookupTableFindV2",
                              "HashTableV2",
                              "Placeholder",
                              "_Arg",
                              "AnonymousIterator",
                              "AnonymousIteratorV2",
                              "AnonymousIteratorV3"};
constexpr OpSet kKillsValues = {"Switch", "RefSwitch", "_SwitchN"};
constexpr OpSet kRevives = {"Merge", "RefMerge"};

bool BoolAttr(const AttrMap& attrs, absl::string_view name) {
  const Attr* a = attrs.Find(name);
  const bool* value = a == nullptr ? nullptr : a->get<bool>();
  return value != nullptr && *value;
}

bool IsForXla(const AttrMap& attrs) {
  return attrs.Find("_xla_compile_id") != nullptr || attrs.Find("_tpu_replicate") != nullptr ||
         BoolAttr(attrs, "_XlaMustCompile");
}

bool MayBeLost(const Node& n) { return n.Is(kMayBeLost) || n.Is(kDrawsNumbers) || !HasEffect(n); }

// Everything that has an effect and that no control result waits for.
const Node* UnorderedEffect(const Function& f) {
  std::vector<const Node*> todo;
  absl::flat_hash_set<const Node*> ordered;
  const auto push = [&](const Node* n) {
    if (ordered.insert(n).second) todo.push_back(n);
  };
  for (const auto& [name, node] : f.control_results) push(node);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    for (const Endpoint& e : n->inputs()) push(e.node);
    for (const Node* c : n->control_inputs()) push(c);
  }
  for (const Node* n : f.body->Nodes()) {
    if (!MayBeLost(*n) && !ordered.contains(n)) return n;
  }
  return nullptr;
}

bool HasEffects(const Function& f) {
  const std::vector<Node*> nodes = f.body->Nodes();
  return std::ranges::any_of(nodes, [](const Node* n) { return !MayBeLost(*n); });
}

// Does a result come from a Switch with no Merge in between?
bool MayReturnDead(const Function& f) {
  std::vector<const Node*> todo;
  absl::flat_hash_set<const Node*> seen;
  for (const Endpoint& e : f.FlatResults()) {
    if (seen.insert(e.node).second) todo.push_back(e.node);
  }
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (n->Is(kKillsValues)) return true;
    if (n->Is(kRevives)) continue;
    for (const Endpoint& e : n->inputs()) {
      if (seen.insert(e.node).second) todo.push_back(e.node);
    }
  }
  return false;
}

}  // namespace

std::string WhyNotInlined(const Graph&, const Node& node, const Function& f,
                          const PassContext& context) {
  if (context.for_execution) return "";
  const bool aggressive = context.config.function_optimization == Toggle::kAggressive;
  if (IsFed(node)) return "requests feed it";
  if (IsForXla(node.attrs()) || IsForXla(f.attrs)) return "XLA compiles it";
  if (BoolAttr(f.attrs, "_noinline") && !aggressive) return "the function says _noinline";
  if (MayReturnDead(f)) return "a dead value may leave the body";
  if (aggressive) return "";
  if (const Node* lost = UnorderedEffect(f)) {
    return absl::StrCat("nothing says that '", lost->name(), "' (", lost->op(), ") runs");
  }
  const bool waited =
      std::ranges::any_of(node.uses(), [](const Use& use) { return use.is_control(); });
  if (HasEffects(f) && !waited && !IsRoot(node)) {
    return "nobody waits for the call, so that its effects might be lost";
  }
  return "";
}

}  // namespace smelt
