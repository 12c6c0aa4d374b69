#include "smelt/lite/prepare/known.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/shape/values.h"

namespace smelt {
namespace {

// Frames of version 1: a constant would have to stand in the frame of who reads it.
constexpr OpSet kFrames = {"Enter", "RefEnter", "Merge", "RefMerge", "Switch", "RefSwitch"};

bool FoldSizes(Graph& graph) {
  if (std::ranges::any_of(graph.Nodes(), [](const Node* n) { return n->Is(kFrames); }))
    return false;
  const StatusOr<ShapeTable> shapes = InferShapes(graph, {});
  const auto order = graph.TopologicalOrder();
  // Who reads the graph next says what is wrong with it.
  if (!shapes.ok() || !order.ok()) return false;
  std::map<std::pair<int, int>, IntVector> known;
  bool changed = false;
  for (Node* n : *order) {
    if (n->Is("Const")) {
      const TensorValue* stated = StatedConstant(*n);
      const auto value = stated == nullptr ? StatusOr<Tensor>(NotFound("")) : stated->Materialize();
      if (!value.ok()) continue;
      if (auto ints = IntVectorOf(*value)) known[{n->id(), 0}] = *std::move(ints);
      continue;
    }
    if (std::ranges::none_of(n->output_types, IsIndexType)) continue;
    std::vector<const PartialShape*> in;
    std::vector<const IntVector*> values;
    for (const Endpoint& e : n->inputs()) {
      in.push_back(&shapes->of(e));
      const auto at = known.find({e.node->id(), e.port});
      values.push_back(at == known.end() ? nullptr : &at->second);
    }
    auto out = FollowValues(*n, in, values);
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i]) continue;
      const Endpoint from{n, static_cast<int>(i)};
      const bool read = std::ranges::any_of(
          n->uses(), [&](const Use& u) { return !u.is_control() && u.port() == from.port; });
      if (read && out[i]->complete()) {
        Node* value = graph.AddConst(n->name(), ToTensor(*out[i], BaseType(n->output_types[i])));
        graph.ReplaceAllUses(from, {value, 0});
        changed = true;
      }
      known[{n->id(), from.port}] = *std::move(out[i]);
    }
  }
  return changed;
}

// Which function a branch takes, where its choice is a constant.
const FuncAttr* TakenBranch(const Node& n) {
  const TensorValue* stated = StatedConstant(*n.input(0).node);
  if (stated == nullptr) return nullptr;
  const StatusOr<Tensor> value = stated->Materialize();
  if (!value.ok() || value->shape().rank() != 0) return nullptr;
  if (IsIf(n)) {
    if (value->dtype() != Dtype::kBool) return nullptr;
    const Attr* branch = n.Find(value->data<bool>()[0] ? "then_branch" : "else_branch");
    return branch == nullptr ? nullptr : branch->get<FuncAttr>();
  }
  const Attr* branches = n.Find("branches");
  const auto* all = branches == nullptr ? nullptr : branches->get<std::vector<FuncAttr>>();
  if (all == nullptr || all->empty() || value->dtype() != Dtype::kInt32) return nullptr;
  // An index beyond them takes the last.
  const auto index = static_cast<size_t>(value->data<int32_t>()[0]);
  return &(*all)[std::min(index, all->size() - 1)];
}

StatusOr<bool> FoldBranches(Graph& graph) {
  bool changed = false;
  for (Node* n : graph.Nodes()) {
    if (!IsBranch(*n)) continue;
    const FuncAttr* taken = TakenBranch(*n);
    if (taken == nullptr) continue;
    DtypeVector in, out;
    for (int i = 1; i < n->num_inputs(); ++i) {
      in.push_back(BaseType(n->input_types[static_cast<size_t>(i)]));
    }
    for (const Dtype type : n->output_types) out.push_back(BaseType(type));
    AttrMap attrs;
    attrs.Set("Tin", std::move(in));
    attrs.Set("Tout", std::move(out));
    attrs.Set("f", *taken);
    const bool pure = n->Is("StatelessIf") || n->Is("StatelessCase");
    ASSIGN_OR_RETURN(Node * call,
                     graph.Add(n->name(), pure ? "PartitionedCall" : "StatefulPartitionedCall",
                               {n->inputs().begin() + 1, n->inputs().end()}, std::move(attrs)));
    graph.SetControlInputs(call, n->control_inputs());
    for (int i = 0; i < n->num_outputs(); ++i) graph.ReplaceAllUses({n, i}, {call, i});
    graph.ReplaceControlUses(n, call);
    graph.Remove(n);
    changed = true;
  }
  return changed;
}

}  // namespace

void TakeDefaults(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    if (!n->Is("PlaceholderWithDefault")) continue;
    graph.ReplaceAllUses({n, 0}, n->input(0));
    graph.ReplaceControlUses(n, n->input(0).node);
    graph.Remove(n);
  }
}

StatusOr<bool> FoldKnown(Graph& graph) {
  const bool sizes = FoldSizes(graph);
  ASSIGN_OR_RETURN(const bool branches, FoldBranches(graph));
  return sizes || branches;
}

}  // namespace smelt
