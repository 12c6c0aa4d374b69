#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/run_op.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// For all nodes of a graph together. Only kernels that ask whether to end are stopped by it: those
// whose time is not in proportion to their inputs and outputs.
constexpr absl::Duration kMaxFoldingTime = absl::Seconds(2);

bool MayFold(const Node& n) {
  if (n.def() == nullptr || n.def()->stateful || n.num_outputs() == 0 || n.num_inputs() == 0) {
    return false;
  }
  if (n.Is(kNeverFolded)) return false;
  for (Dtype t : n.output_types) {
    if (!IsPod(BaseType(t)) && t != Dtype::kString) return false;
    if (IsRef(t)) return false;
  }
  return true;
}

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
  Step step;
  ResourceManager none, none_of_step;
  step.resources = &none;
  step.step_resources = &none_of_step;
  // What takes long is left to the run as well, which has a time limit of its own.
  Cancellation limit;
  limit.SetDeadline(absl::Now() + kMaxFoldingTime);
  step.cancellation = &limit;
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
    if (!MayFold(*n) || n->attrs().Find("_root")) continue;
    std::vector<Tensor> inputs;
    for (const Endpoint& e : n->inputs()) {
      const Tensor* t = value_of(e);
      if (t == nullptr) break;
      inputs.push_back(*t);
    }
    if (inputs.size() != n->inputs().size()) continue;
    auto outputs = RunOp(*n, std::move(inputs), step);
    // An error is left to the run, which reports it with its node, or never gets there.
    if (!outputs.ok()) continue;
    int64_t bytes = 0;
    for (const Tensor& t : *outputs) bytes += static_cast<int64_t>(t.bytes());
    if (bytes > context.max_folded_bytes && !Dequantizes(*n)) continue;
    // What the node had to wait for, and the constants that it read, its constants have to wait for
    // as well: a branch that is not taken may be all that keeps them from having a value.
    std::vector<Node*> waits = n->control_inputs();
    for (const Endpoint& e : n->inputs()) {
      const auto folded = constants.find(e.node);
      const Node* read = folded == constants.end() ? e.node : folded->second[0];
      for (Node* c : read->control_inputs()) {
        if (std::ranges::find(waits, c) == waits.end()) waits.push_back(c);
      }
    }
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
