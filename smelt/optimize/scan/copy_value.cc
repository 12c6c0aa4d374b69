#include "smelt/optimize/scan/copy_value.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/graph/copy_node.h"

namespace smelt {

StatusOr<Endpoint> CopyValue(Graph& to, const Graph& from, Endpoint value,
                             absl::FunctionRef<StatusOr<Endpoint>(const Node&)> arg,
                             absl::FunctionRef<std::string(const Node&)> name,
                             const std::vector<Node*>& after) {
  absl::flat_hash_set<const Node*> needed;
  std::vector<const Node*> todo = {value.node};
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!needed.insert(n).second) continue;
    for (const Endpoint& e : n->inputs()) todo.push_back(e.node);
  }
  absl::flat_hash_map<const Node*, Endpoint> args;
  absl::flat_hash_map<const Node*, Node*> copies;
  const auto there = [&](Endpoint e) {
    return e.node->Is("_Arg") ? args.at(e.node) : Endpoint{copies.at(e.node), e.port};
  };
  ASSIGN_OR_RETURN(const std::vector<Node*> order, from.TopologicalOrder());
  for (const Node* n : order) {
    if (!needed.contains(n)) continue;
    if (n->Is("_Arg")) {
      ASSIGN_OR_RETURN(args[n], arg(*n));
      continue;
    }
    ASSIGN_OR_RETURN(Node * copy, AddCopy(to, *n, name(*n)));
    std::vector<Endpoint> inputs;
    for (const Endpoint& e : n->inputs()) inputs.push_back(there(e));
    to.SetInputs(copy, inputs);
    to.SetControlInputs(copy, after);
    copy->EraseAttr("_class");
    copies[n] = copy;
  }
  return there(value);
}

}  // namespace smelt
