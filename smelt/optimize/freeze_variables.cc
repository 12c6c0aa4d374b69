#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "smelt/analysis/handle_flow.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

bool IsRefVariable(const Node& n) { return n.Is("VariableV2") || n.Is("Variable"); }

// The use of a handle changes no variable in this graph. _Retval: after a write through a handle
// that left the graph the executable is made anew (runtime/frozen.h).
bool LeavesVariable(const Node& n) {
  return n.Is(kReadsVariable) || n.Is("VarIsInitializedOp") || n.Is("_Retval");
}

// The variable node behind a handle, through identities.
Node* HandleSource(Endpoint e) { return BehindIdentities(e).node; }

// The graph makes the handle here, or gets it as an argument.
bool IsHandleSource(const Node& n) {
  return n.Is("VarHandleOp") || (n.Is("_Arg") && n.output_types[0] == Dtype::kResource);
}

// Which handles of the graph somebody may write through, here or in a function that is called.
class Writers {
 public:
  explicit Writers(Graph& graph) {
    HandleFlow flow(graph);
    std::vector<const Node*> sources;
    for (Node* n : graph.Nodes()) {
      if (!IsHandleSource(*n)) continue;
      flow.Hold(static_cast<int>(sources.size()), nullptr, {n, 0});
      sources.push_back(n);
    }
    flow.Follow([&](int handle, const HandleUse& use) {
      if (!LeavesVariable(*use.node)) written_.insert(sources[static_cast<size_t>(handle)]);
    });
  }

  bool Written(const Node* variable) const { return written_.contains(variable); }

 private:
  absl::flat_hash_set<const Node*> written_;
};

// All readers of a ref variable want its value (Identity, Add, ...), none the reference itself.
bool OnlyValueReaders(const Node* variable) {
  for (const Use& use : variable->uses()) {
    if (use.is_control()) continue;
    if (IsRef(use.node->input_types[use.input]) || use.node->def() == nullptr) return false;
  }
  return true;
}

// Can the lookup be one of a constant of this rank?
bool MayLookUp(const Node& n, int rank) {
  if (n.Is("ResourceGatherNd")) return true;
  return n.Is("ResourceGather") && n.Int("batch_dims") == 0 && rank > 0;
}

// The lookup becomes one of a constant. The kernels refuse the same indices in the same words.
Status LookUpConstant(Graph& graph, Node* lookup, Node* constant) {
  const bool slices = lookup->Is("ResourceGather");
  AttrMap attrs;
  attrs.Set("Tparams", constant->output_types[0]);
  attrs.Set("Tindices", lookup->input_types[1]);
  std::vector<Endpoint> inputs = {{constant, 0}, lookup->inputs()[1]};
  if (slices) {
    attrs.Set("Taxis", Dtype::kInt32);
    ASSIGN_OR_RETURN(const Tensor zero, Tensor::Zeros(Dtype::kInt32, Shape()));
    inputs.push_back({graph.AddConst(absl::StrCat(lookup->name(), "/axis"), zero), 0});
  }
  SetAttrsButMarks(lookup, std::move(attrs));
  graph.SetOp(lookup, slices ? "GatherV2" : "GatherNd");
  graph.SetInputs(lookup, inputs);
  return graph.ResolveTypes(lookup);
}

}  // namespace

Status FreezeVariables(Graph& graph, const PassContext& context) {
  if (!context.frozen_value) return OkStatus();
  const Writers writers(graph);
  absl::flat_hash_map<const Node*, Node*> constant_of;  // by variable; nullptr: not frozen
  auto constant = [&](Node* variable) -> Node* {
    auto [it, added] = constant_of.try_emplace(variable, nullptr);
    if (!added) return it->second;
    const bool free =
        IsRefVariable(*variable) ? OnlyValueReaders(variable) : !writers.Written(variable);
    if (!free) return nullptr;
    std::optional<Tensor> value = context.frozen_value(*variable);
    if (!value) return nullptr;
    it->second = graph.AddConst(variable->name() + "/frozen", *value);
    return it->second;
  };
  for (Node* n : graph.Nodes()) {
    if (n->Is("ReadVariableOp")) {
      Node* variable = HandleSource(n->inputs()[0]);
      if (!IsHandleSource(*variable)) continue;
      Node* c = constant(variable);
      if (c == nullptr || c->output_types[0] != n->output_types[0]) continue;
      graph.ReplaceAllUses({n, 0}, {c, 0});
      graph.ReplaceControlUses(n, nullptr);
      graph.Remove(n);
    } else if (n->Is("ResourceGather") || n->Is("ResourceGatherNd")) {
      Node* variable = HandleSource(n->inputs()[0]);
      if (!IsHandleSource(*variable)) continue;
      Node* c = constant(variable);
      if (c == nullptr || c->output_types[0] != n->output_types[0]) continue;
      const TensorValue* value = StatedConstant(*c);
      if (value == nullptr || !MayLookUp(*n, static_cast<int>(value->shape.rank()))) continue;
      RETURN_IF_ERROR(LookUpConstant(graph, n, c));
    } else if (IsRefVariable(*n)) {
      Node* c = constant(n);
      if (c == nullptr) continue;
      graph.ReplaceAllUses({n, 0}, {c, 0});
      graph.ReplaceControlUses(n, nullptr);
      graph.Remove(n);
    }
  }
  return OkStatus();
}

}  // namespace smelt
