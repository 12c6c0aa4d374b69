// Inlining within a function that keeps its signature: the function optimizer works on callable
// graphs for sessions, so results and effects are held by helper nodes meanwhile.
#include <algorithm>

#include "smelt/convert/stages.h"
#include "smelt/optimize/passes.h"

namespace smelt {

Status InlineCalls(Function& f, absl::string_view device,
                   const std::function<bool(const Function& callee)>& wanted) {
  Graph& g = *f.body;
  PassContext context;
  context.device_type = device;
  context.keep_call = [&](const Function& callee) { return !wanted(callee); };
  // The nodes that give results may be calls, which inlining removes: identities hold the places.
  std::vector<Node*> returned;
  for (const Endpoint& e : f.FlatResults()) {
    AttrMap attrs;
    attrs.Set("T", BaseType(e.node->output_types[e.port]));
    ASSIGN_OR_RETURN(Node * n, g.Add("returned", "Identity", {e}, std::move(attrs)));
    returned.push_back(n);
  }
  for (auto& [name, node] : f.control_results) {
    ASSIGN_OR_RETURN(Node * n, g.Add("done", "NoOp", {}));
    g.SetControlInputs(n, {node});
    node = n;
  }
  RETURN_IF_ERROR(OptimizeFunctions(g, context));
  std::vector<Node*> keep(f.args.begin(), f.args.end());
  size_t next = 0;
  for (auto& result : f.results) {
    for (Endpoint& e : result) {
      Node* n = returned[next++];
      e = n->inputs()[0];
      g.Remove(n);
      keep.push_back(e.node);
    }
  }
  for (auto& [name, node] : f.control_results) keep.push_back(node);
  // What has an effect runs also when no result needs it.
  for (Node* n : g.Nodes()) {
    if (!n->EraseAttr("_root")) continue;
    const bool stated =
        std::ranges::any_of(f.control_results, [&](const auto& r) { return r.second == n; });
    if (!stated) {
      f.control_results.emplace_back(n->name(), n);
      f.signature.control_outputs.push_back(n->name());
    }
    keep.push_back(n);
  }
  g.Prune(keep);
  return OkStatus();
}

}  // namespace smelt
