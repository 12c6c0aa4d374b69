#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

bool IsPlainIdentity(const Node& n) {
  return n.Is(kIdentityOps) || n.Is("PlaceholderWithDefault") ||
         (n.Is("TPUReplicatedInput") && n.num_inputs() == 1) ||
         (n.Is("TPUReplicatedOutput") && n.num_outputs() == 1);
}

// An identity of a ref variable is the read of its value, whose place in the order counts.
bool ReadsRef(const Node& n) {
  return std::ranges::any_of(n.inputs(),
                             [](Endpoint e) { return IsRef(e.node->output_types[e.port]); });
}

// In graphs with version 1 control flow an identity, and a control edge to it, may be what makes
// nodes dead in a branch that is not taken.
bool HasSwitch(const std::vector<Node*>& nodes) {
  return std::ranges::any_of(nodes, [](const Node* n) {
    return n->Is("Switch") || n->Is("Merge") || n->Is("Enter") || n->Is("RefSwitch") ||
           n->Is("RefEnter");
  });
}

bool WithoutEffect(const Node& n) {
  return (!HasEffect(n) && !n.def()->stateful && !TakesReference(n)) || n.Is("_Arg") ||
         n.Is("VarHandleOp") || n.Is("Placeholder");
}

}  // namespace

Status RemoveIdentities(Graph& graph, const PassContext&) {
  const std::vector<Node*> nodes = graph.Nodes();
  const bool control_flow = HasSwitch(nodes);
  // Where each removed output leads. Chains are followed once all are known.
  absl::flat_hash_map<std::pair<const Node*, int>, Endpoint> to;
  for (Node* n : nodes) {
    if (!IsPlainIdentity(*n) || ReadsRef(*n) || n->attrs().Find("_root")) continue;
    if (!n->control_inputs().empty() &&
        (control_flow || !std::ranges::all_of(n->control_inputs(), [](const Node* c) {
           return WithoutEffect(*c) && c->control_inputs().empty();
         }))) {
      continue;
    }
    if (control_flow && (n->inputs()[0].node->Is("Switch") || n->inputs()[0].node->Is("Merge"))) {
      continue;
    }
    for (int i = 0; i < n->num_outputs(); ++i) to[{n, i}] = n->inputs()[i];
  }
  // Each link that was followed leads to the end from then on: chains may be as long as the graph.
  std::vector<Endpoint*> followed;
  auto final = [&](Endpoint e) {
    followed.clear();
    for (auto it = to.find({e.node, e.port}); it != to.end(); it = to.find({e.node, e.port})) {
      followed.push_back(&it->second);
      e = it->second;
    }
    for (Endpoint* link : followed) *link = e;
    return e;
  };
  for (Node* n : nodes) {
    for (int i = 0; i < n->num_inputs(); ++i) graph.SetInput(n, i, final(n->input(i)));
    std::vector<Node*> controls;
    for (Node* c : n->control_inputs()) {
      // Waiting for a removed identity is waiting for its source.
      Node* source = to.contains({c, 0}) ? final({c, 0}).node : c;
      // Nodes without effect and without anything to wait for order nothing.
      if (!control_flow && source->inputs().empty() && source->control_inputs().empty() &&
          WithoutEffect(*source)) {
        continue;
      }
      if (source != n) controls.push_back(source);
    }
    graph.SetControlInputs(n, std::move(controls));
  }
  graph.Prune(Roots(graph));
  return OkStatus();
}

}  // namespace smelt
