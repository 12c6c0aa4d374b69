#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/constant.h"
#include "smelt/optimize/constant/evaluate.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// Makes floats of int8 weights (Cast, then Mul). Such results are folded whatever their size:
// computed anew, every request would pay for all of the weights.
bool Dequantizes(const Node& n) {
  const auto from_int8 = [](const Node& c) {
    return c.Is("Cast") && c.Type("SrcT") == Dtype::kInt8;
  };
  return from_int8(n) || (n.Is("Mul") && std::ranges::any_of(n.inputs(), [&](const Endpoint& e) {
                            return from_int8(*e.node);
                          }));
}

}  // namespace

Status FoldConstants(Graph& graph, const PassContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  absl::flat_hash_map<const Node*, std::vector<Tensor>> known;
  Evaluator evaluator;
  auto value_of = [&](Endpoint e) -> const Tensor* {
    auto it = known.find(e.node);
    return it == known.end() ? nullptr : &it->second[e.port];
  };
  absl::flat_hash_map<const Node*, std::vector<Node*>> constants;  // folded node -> per port
  for (Node* n : order) {
    if (n->Is("Const")) {
      // A constant that has no tensor is reported when it must run.
      if (std::optional<Tensor> t = ConstantTensor(*n)) known[n] = {*std::move(t)};
      continue;
    }
    if (!Evaluator::MayEvaluate(*n) || IsRoot(*n)) continue;
    std::vector<Tensor> inputs;
    for (const Endpoint& e : n->inputs()) {
      const Tensor* t = value_of(e);
      if (t == nullptr) break;
      inputs.push_back(*t);
    }
    if (inputs.size() != n->inputs().size()) continue;
    auto outputs = evaluator.Evaluate(*n, std::move(inputs));
    if (!outputs.ok()) continue;
    if (TotalBytes(*outputs) > context.max_folded_bytes && !Dequantizes(*n)) continue;
    const std::vector<Node*> waits = WaitsOfResult(*n, [&](Endpoint e) -> const Node* {
      const auto folded = constants.find(e.node);
      return folded == constants.end() ? e.node : folded->second[0];
    });
    std::vector<Node*>& ports = constants[n];
    for (int i = 0; i < n->num_outputs(); ++i) {
      Node* c = graph.AddConst(
          n->num_outputs() == 1 ? n->name() + "/folded" : absl::StrCat(n->name(), "/folded_", i),
          (*outputs)[i]);
      graph.SetControlInputs(c, waits);
      ports.push_back(c);
    }
    known[n] = *std::move(outputs);
  }
  for (Node* n : order) {
    const auto it = constants.find(n);
    if (it == constants.end()) continue;
    for (int i = 0; i < n->num_outputs(); ++i) {
      graph.ReplaceAllUses({n, i}, {it->second[static_cast<size_t>(i)], 0});
    }
    graph.ReplaceControlUses(n, it->second[0]);
  }
  graph.Prune(Roots(graph));
  return OkStatus();
}

}  // namespace smelt
