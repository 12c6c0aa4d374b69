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
// What these give is there many times, or later than what else the graph does.
constexpr OpSet kEntersLoops = {"Enter", "RefEnter", "NextIteration", "RefNextIteration"};
constexpr OpSet kRevives = {"Merge", "RefMerge"};

// Does a result, or a control result, come from a Switch with no Merge in between, or out of a loop
// that it did not leave? Who waits for a call whose control result is dead goes on; who waits for
// that node of its body does not.
bool MayReturnDead(const Function& f) {
  const auto matters = [](const Node* n) { return n->Is(kKillsValues) || n->Is(kEntersLoops); };
  if (std::ranges::none_of(f.body->Nodes(), matters)) return false;
  std::vector<const Node*> todo;
  absl::flat_hash_set<const Node*> seen;
  const auto push = [&](const Node* n) {
    if (seen.insert(n).second) todo.push_back(n);
  };
  for (const Endpoint& e : f.FlatResults()) push(e.node);
  for (const auto& [name, node] : f.control_results) push(node);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (n->Is(kEntersLoops)) return true;
    const bool revives = n->Is(kRevives);
    for (const Endpoint& e : n->inputs()) {
      if (e.node->Is(revives ? kEntersLoops : kKillsValues)) return true;
      if (!revives) push(e.node);
    }
    if (revives) continue;
    for (const Node* c : n->control_inputs()) push(c);
  }
  // A Switch that is a result itself.
  return std::ranges::any_of(f.FlatResults(), [](Endpoint e) { return e.node->Is(kKillsValues); });
}

}  // namespace

bool MayBeLost(const Node& n) { return n.Is(kMayBeLost) || n.Is(kDrawsNumbers) || !HasEffect(n); }

bool BoolAttr(const AttrMap& attrs, absl::string_view name) {
  const Attr* a = attrs.Find(name);
  const bool* value = a == nullptr ? nullptr : a->get<bool>();
  return value != nullptr && *value;
}

bool IsForXla(const AttrMap& attrs) {
  return attrs.Find("_xla_compile_id") != nullptr || attrs.Find("_tpu_replicate") != nullptr ||
         BoolAttr(attrs, "_XlaMustCompile");
}

std::vector<const Node*> UnorderedEffects(const Function& f, bool by_results) {
  std::vector<const Node*> todo;
  absl::flat_hash_set<const Node*> ordered;
  const auto push = [&](const Node* n) {
    if (ordered.insert(n).second) todo.push_back(n);
  };
  if (by_results) {
    for (const Endpoint& e : f.FlatResults()) push(e.node);
  } else {
    for (const auto& [name, node] : f.control_results) push(node);
  }
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    for (const Endpoint& e : n->inputs()) push(e.node);
    for (const Node* c : n->control_inputs()) push(c);
  }
  std::vector<const Node*> lost;
  for (const Node* n : f.body->Nodes()) {
    if (!MayBeLost(*n) && !ordered.contains(n)) lost.push_back(n);
  }
  return lost;
}

const InlinePolicy::Facts& InlinePolicy::FactsOf(const Function& f) {
  const auto [it, first] = facts_.try_emplace(&f);
  if (!first) return it->second;
  Facts& facts = it->second;
  facts.may_return_dead = smelt::MayReturnDead(f);
  facts.has_effects =
      std::ranges::any_of(f.body->Nodes(), [](const Node* n) { return !MayBeLost(*n); });
  if (!facts.has_effects) return facts;
  const auto by_results = UnorderedEffects(f, true), by_controls = UnorderedEffects(f, false);
  if (!by_results.empty()) facts.lost_by_results = by_results[0];
  if (!by_controls.empty()) facts.lost_by_controls = by_controls[0];
  return facts;
}

bool InlinePolicy::MayReturnDead(const Function& f) { return FactsOf(f).may_return_dead; }

std::string InlinePolicy::WhyNotInlined(const Node& node, CallKind kind, const Function& f,
                                        const PassContext& context) {
  const bool aggressive = context.config.function_optimization == Toggle::kAggressive;
  if (IsFed(node)) return "requests feed it";
  if (IsForXla(node.attrs()) || IsForXla(f.attrs)) return "XLA compiles it";
  if (BoolAttr(f.attrs, "_noinline") && !aggressive) return "the function says _noinline";
  if (f.attrs.Find("api_implements") != nullptr) return "others may be called in its place";
  const Facts& facts = FactsOf(f);
  if (facts.may_return_dead) return "a dead value may leave the body";
  // What a branch does is waited for by what the branch became.
  if (kind == CallKind::kBranch) return "";
  const bool waited = node.uses().empty() || std::ranges::any_of(node.uses(), [](const Use& use) {
                        return use.is_control();
                      });
  if (!waited && facts.has_effects) {
    return "nobody waits for the call, so that its effects might be lost";
  }
  if (aggressive) return "";
  const Node* lost = kind == CallKind::kDirect ? facts.lost_by_results : facts.lost_by_controls;
  if (lost == nullptr) return "";
  return absl::StrCat("nothing says that '", lost->name(), "' (", lost->op(), ") runs");
}

}  // namespace smelt
