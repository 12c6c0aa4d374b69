#include "smelt/analysis/cost.h"

#include <algorithm>

#include "smelt/analysis/xla_shapes.h"

namespace smelt {
namespace {

constexpr int64_t kMaxCost = int64_t{1} << 60;

// Nodes that hold no computation of their own.
bool IsFree(const Node& n) {
  static constexpr OpSet kFree = {
      "_Arg", "_Retval", "Placeholder", "Const", "NoOp", "VarHandleOp", "VariableV2",
      "TPUReplicateMetadata", "TPUCompilationResult", "TPUReplicatedInput", "TPUReplicatedOutput",
      "TPUOrdinalSelector", "HashTableV2",
      // Calls cost what their functions cost.
      "TPUPartitionedCall", "PartitionedCall", "StatefulPartitionedCall"};
  return n.Is(kFree);
}

// Cost 1 whatever the size: bookkeeping of shapes.
bool IsBookkeeping(const Node& n) {
  static constexpr OpSet kCheap = {"Shape",        "StridedSlice", "Reshape",   "ExpandDims",
                                   "Squeeze",      "Identity",     "IdentityN", "ReadVariableOp",
                                   "StopGradient", "Size",         "Rank"};
  return n.Is(kCheap);
}

}  // namespace

int64_t CostElements(const PartialShape& s) {
  int64_t n = 1;
  if (!s.known_rank()) return 1;
  for (int64_t d : s.dims()) {
    if (d == 0) return 0;
    if (d > 0 && __builtin_mul_overflow(n, d, &n)) return kMaxCost;
  }
  return n;
}

int64_t AddCost(int64_t a, int64_t b) { return std::min(kMaxCost, a + b); }

CostModel::CostModel(const Graph& graph)
    : graph_(graph), shapes_(InferModelShapes(graph, XlaShapeRules())) {}

const ShapeTable& CostModel::ShapesOf(absl::string_view function) const {
  static const auto* none = new ShapeTable();
  auto it = shapes_.functions.find(function);
  return it == shapes_.functions.end() ? *none : it->second;
}

int64_t CostModel::OfNodes(std::span<Node* const> nodes) { return Sum(nodes, shapes_.graph); }

int64_t CostModel::OfFunction(absl::string_view name) {
  auto [it, added] = functions_.try_emplace(std::string(name), 0);
  if (!added) return it->second;
  const Function* f = graph_.library()->Find(name);
  if (f == nullptr || f->body == nullptr) return 0;
  const int64_t cost = Sum(std::vector<Node*>(f->body->Nodes()), ShapesOf(name));
  functions_[std::string(name)] = cost;
  return cost;
}

int64_t CostModel::OfNode(const Node& n, const ShapeTable& shapes) {
  int64_t cost = OfNodeAlone(n, shapes);
  if (n.Is("TPUPartitionedCall")) return cost;
  ForEachCallee(*graph_.library(), n,
                [&](absl::string_view name) { cost = AddCost(cost, OfFunction(name)); });
  return cost;
}

int64_t CostModel::OfNodeAlone(const Node& n, const ShapeTable& shapes) {
  if (IsFree(n)) return 0;
  if (IsBookkeeping(n)) return 1;
  int64_t out = 0, in = 0;
  for (int p = 0; p < n.num_outputs(); ++p) {
    out = AddCost(out, CostElements(shapes.of({const_cast<Node*>(&n), p})));
  }
  // Lookups touch what they fetch, not the whole table.
  if (n.Is("GatherV2") || n.Is("ResourceGather") || n.Is("SparseSegmentSum") ||
      n.Is("SparseSegmentMean")) {
    return AddCost(out, 1);
  }
  if (n.Is("LookupTableFindV2")) {
    const bool text = n.num_inputs() > 1 && BaseType(n.input_types[1]) == Dtype::kString;
    const int64_t factor = text ? 16 : 8;
    return out > kMaxCost / factor ? kMaxCost : out * factor;
  }
  for (const Endpoint& e : n.inputs()) in = AddCost(in, CostElements(shapes.of(e)));
  return AddCost(1, in);
}

int64_t CostModel::Sum(std::span<Node* const> nodes, const ShapeTable& shapes) {
  int64_t cost = 0;
  for (const Node* n : nodes) cost = AddCost(cost, OfNode(*n, shapes));
  return cost;
}

}  // namespace smelt
