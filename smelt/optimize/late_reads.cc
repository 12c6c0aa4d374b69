#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

bool ReadsReference(const Node& n) {
  return n.Is("Identity") && IsRef(n.inputs()[0].node->output_types[n.inputs()[0].port]) &&
         !IsRef(n.input_types[0]);
}

}  // namespace

void ReadLate(Graph& graph, absl::FunctionRef<bool(const Node&)> wanted) {
  std::vector<Node*> reads;
  absl::flat_hash_set<const Node*> found;
  auto add = [&](Node* n) {
    if (ReadsReference(*n) && wanted(*n->inputs()[0].node) && found.insert(n).second) {
      reads.push_back(n);
    }
  };
  for (Node* n : graph.Nodes()) add(n);
  // A reader that is an Identity itself has then become a read of the reference: it joins `reads`.
  for (size_t i = 0; i < reads.size(); ++i) {
    Node* read = reads[i];
    for (const Use& use : read->OrderedUses()) {
      // A Merge takes what is alive, and the variable always is.
      if (use.is_control() || use.node->Is("Merge")) continue;
      graph.SetInput(use.node, use.input, read->input(0));
      std::vector<Node*> waits = use.node->control_inputs();
      waits.push_back(read);
      graph.SetOrderedControlInputs(use.node, std::move(waits));
      add(use.node);
    }
  }
}

Status LateReads(Graph& graph, const PassContext&) {
  if (std::ranges::any_of(graph.Nodes(), [](const Node* n) { return TakesReference(*n); })) {
    ReadLate(graph, [](const Node&) { return true; });
  }
  return OkStatus();
}

}  // namespace smelt
