#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
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

// The variable node behind a handle, through what loops and branches of version 1 take in.
Node* HandleSource(Endpoint e) {
  e = BehindIdentities(e);
  while (e.node->Is({"Enter", "Switch"})) e = BehindIdentities(e.node->input(0));
  return e.node;
}

Dtype FrozenType(Endpoint e) { return e.node->output_types[static_cast<size_t>(e.port)]; }

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
Status LookUpConstant(Graph& graph, Node* lookup, Endpoint constant) {
  const bool slices = lookup->Is("ResourceGather");
  AttrMap attrs;
  attrs.Set("Tparams", constant.node->output_types[static_cast<size_t>(constant.port)]);
  attrs.Set("Tindices", lookup->input_types[1]);
  std::vector<Endpoint> inputs = {constant, lookup->inputs()[1]};
  if (slices) {
    attrs.Set("Taxis", Dtype::kInt32);
    ASSIGN_OR_RETURN(const Tensor zero, Tensor::Zeros(Dtype::kInt32, Shape()));
    Node* axis = graph.AddConst(absl::StrCat(lookup->name(), "/axis"), zero);
    // In the frame, or the branch, that the constant was brought to.
    if (constant.node->Is("Identity")) graph.SetControlInputs(axis, {constant.node});
    inputs.push_back({axis, 0});
  }
  SetAttrsButMarks(lookup, std::move(attrs));
  graph.SetOp(lookup, slices ? "GatherV2" : "GatherNd");
  graph.SetInputs(lookup, inputs);
  return graph.ResolveTypes(lookup);
}

// What stands for handles that loops and branches of version 1 take in: the constants, taken in the
// same way.
class TakenIn {
 public:
  // `constant`: that of a variable, or nullptr.
  TakenIn(Graph& graph, absl::FunctionRef<Node*(Node*)> constant)
      : graph_(graph), constant_(constant) {}

  // No node: what the handle names is not frozen.
  StatusOr<Endpoint> Of(Endpoint handle) {
    handle = BehindIdentities(handle);
    Node* n = handle.node;
    if (IsHandleSource(*n)) return Endpoint{constant_(n), 0};
    if (!n->Is({"Enter", "Switch"})) return Endpoint{};
    if (const auto at = made_.find(n); at != made_.end()) return Endpoint{at->second, handle.port};
    ASSIGN_OR_RETURN(const Endpoint value, Of(n->input(0)));
    if (value.node == nullptr) return Endpoint{};
    std::vector<Endpoint> inputs(n->inputs().begin(), n->inputs().end());
    inputs[0] = value;
    AttrMap attrs;
    attrs.Set("T", value.node->output_types[static_cast<size_t>(value.port)]);
    for (const absl::string_view name : {"frame_name", "is_constant", "parallel_iterations"}) {
      if (const Attr* attr = n->attrs().Find(name)) attrs.Set(name, *attr);
    }
    ASSIGN_OR_RETURN(Node * made, graph_.Add(absl::StrCat(n->name(), "/frozen"), n->op(),
                                             std::move(inputs), std::move(attrs)));
    made_[n] = made;
    return Endpoint{made, handle.port};
  }

 private:
  Graph& graph_;
  absl::FunctionRef<Node*(Node*)> constant_;
  absl::flat_hash_map<const Node*, Node*> made_;
};

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
  TakenIn taken_in(graph, constant);
  for (Node* n : graph.Nodes()) {
    if (n->Is("ReadVariableOp")) {
      ASSIGN_OR_RETURN(const Endpoint c, taken_in.Of(n->input(0)));
      if (c.node == nullptr || FrozenType(c) != n->output_types[0]) continue;
      graph.ReplaceAllUses({n, 0}, c);
      graph.ReplaceControlUses(n, nullptr);
      graph.Remove(n);
    } else if (n->Is("ResourceGather") || n->Is("ResourceGatherNd")) {
      Node* variable = HandleSource(n->input(0));
      ASSIGN_OR_RETURN(Endpoint c, taken_in.Of(n->input(0)));
      if (c.node == nullptr || FrozenType(c) != n->output_types[0]) continue;
      const TensorValue* value = StatedConstant(*constant(variable));
      if (value == nullptr || !MayLookUp(*n, static_cast<int>(value->shape.rank()))) continue;
      if (!c.node->Is("Const")) {
        AttrMap attrs;
        attrs.Set("T", FrozenType(c));
        ASSIGN_OR_RETURN(Node * table, graph.Add(absl::StrCat(n->name(), "/table"), "Identity", {c},
                                                 std::move(attrs)));
        c = {table, 0};
      }
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
