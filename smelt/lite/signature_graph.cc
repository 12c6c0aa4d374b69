#include "smelt/lite/signature_graph.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "smelt/graph/verify.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/composites/composite.h"
#include "smelt/lite/recurrences/recurrence.h"
#include "smelt/optimize/pipeline.h"
#include "smelt/runtime/callable_graph.h"

namespace smelt {
namespace {

// By the names of pipeline.h. What only this program's kernels run is not among them.
constexpr absl::string_view kPasses[] = {
    "function_optimizer",           // one plain graph
    "call_modules",                 // JAX exports become calls
    "function_optimizer",           // of what they were lowered to
    "freeze_variables",             // weights become constants
    "dependency_optimizer",         // reads of variables leave identities
    "common_subgraph_elimination",  // what is there once is folded once
    "debug_stripper",               // checks stand between constants
    "constant_folding",             // shapes, axes, and what is made of weights
    "arithmetic_optimizer",         // neighbors that undo each other
    "constant_folding",             // what that brought together
    "dependency_optimizer",         // and the identities that it left
};

StatusOr<std::vector<Pass>> Passes() {
  std::vector<Pass> out;
  for (const absl::string_view name : kPasses) {
    const Pass* pass = FindPass(name);
    if (pass == nullptr) return Internal("there is no pass ", name);
    out.push_back(*pass);
  }
  return out;
}

// "StatefulPartitionedCall/model/dense/MatMul" was "model/dense/MatMul" in the function that was
// inlined: the name that users know.
Status DropCallNames(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    std::vector<absl::string_view> parts = absl::StrSplit(n->name(), '/');
    size_t first = 0;
    while (first + 1 < parts.size() && absl::StrContains(parts[first], "PartitionedCall")) ++first;
    if (first == 0) continue;
    const std::string name =
        absl::StrJoin(parts.begin() + static_cast<ptrdiff_t>(first), parts.end(), "/");
    if (graph.Find(name) == nullptr) RETURN_IF_ERROR(graph.Rename(n, name));
  }
  return OkStatus();
}

std::vector<std::string> Names(const std::vector<LiteSlot>& slots) {
  std::vector<std::string> out;
  for (const LiteSlot& s : slots) out.push_back(s.tensor);
  return out;
}

}  // namespace

StatusOr<SignatureGraph> GraphOfSignature(
    LoadedModel& model, const std::string& key,
    const std::set<std::string, std::less<>>& composites_off) {
  ASSIGN_OR_RETURN(const Signature* signature, model.FindSignature(key));
  SignatureGraph out;
  out.key = key;
  const auto inputs = LoadedModel::Slots(signature->inputs);
  const auto outputs = LoadedModel::Slots(signature->outputs);
  for (const auto& [name, slot] : inputs) out.inputs.push_back({name, slot.tensor});
  for (const auto& [name, slot] : outputs) out.outputs.push_back({name, slot.tensor});
  Session& session = model.session();
  ASSIGN_OR_RETURN(out.graph,
                   CutCallable(session.graph(), Names(out.inputs), Names(out.outputs), {}));
  for (Node* n : out.graph->Nodes()) {
    if (!n->Is("_Arg")) continue;
    const auto slot = std::next(inputs.begin(), n->Int("index"));
    n->AttrsToChange().Set(kOutputShapes, std::vector<PartialShape>{slot->second.shape});
  }
  RETURN_IF_ERROR(VerifyChanges(*out.graph));
  PassContext context;
  context.lower_control_flow = false;
  context.config.debug_stripper = Toggle::kOn;
  context.frozen_value = [&](const Node& node) -> std::optional<Tensor> {
    if (node.Is("_Arg")) return std::nullopt;
    const ResourceName at(node);
    const auto variable = std::dynamic_pointer_cast<Variable>(
        session.resources().Find(at.container, Variable::kKind, at.name));
    if (variable == nullptr) return std::nullopt;
    const Tensor value = variable->Read();
    return value.valid() ? std::optional<Tensor>(value) : std::nullopt;
  };
  ASSIGN_OR_RETURN(const std::vector<Pass> passes, Passes());
  // Only when all else is known can a call be looked at; those that do not fit become bodies, where
  // there may be others.
  std::set<std::string, std::less<>> declined;
  context.keep_call = [&](const Function& f) {
    return IsKeptComposite(f, declined, composites_off);
  };
  for (bool more = true; more;) {
    RETURN_IF_ERROR(RunPasses(passes, *out.graph, context));
    ASSIGN_OR_RETURN(more, ChooseComposites(*out.graph, declined, &out.composites));
  }
  RETURN_IF_ERROR(TakeLoops(out.graph, context, composites_off, &out.composites));
  RETURN_IF_ERROR(DropCallNames(*out.graph));
  return out;
}

}  // namespace smelt
