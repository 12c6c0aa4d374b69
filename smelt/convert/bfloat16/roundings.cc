// How many roundings follow one another between an input and a result.
#include "smelt/convert/bfloat16/bfloat16.h"

namespace smelt {

Roundings LongestRoundings(const FloatGraph& g) {
  Roundings out;
  auto order = g.graph->TopologicalOrder();
  if (!order.ok()) return out;  // a loop of TensorFlow 1
  struct Chain {
    int count = 0;
    const Node* before = nullptr;
    bool rounds = false;
  };
  absl::flat_hash_map<const Node*, Chain> chains;
  const Node* last = nullptr;
  for (Node* n : *order) {
    Chain chain;
    for (const Endpoint& e : n->inputs()) {
      auto it = chains.find(e.node);
      if (it == chains.end() || it->second.count <= chain.count) continue;
      chain = {it->second.count, e.node, false};
    }
    for (int port = 0; port < n->num_outputs() && !chain.rounds; ++port) {
      const int u = g.Out({n, port});
      chain.rounds =
          u >= 0 && g.units[u].bf16 &&
          (g.units[u].kind == Bf16Class::kAnchor || g.units[u].kind == Bf16Class::kArithmetic);
    }
    chain.count += chain.rounds;
    if (chain.count > out.count) {
      out.count = chain.count;
      last = n;
    }
    if (chain.count > 0) chains[n] = chain;
  }
  out.path = g.path;
  for (const Node* n = last; n != nullptr; n = chains[n].before) {
    if (chains[n].rounds) ++out.ops[std::string(n->op())];
  }
  return out;
}

}  // namespace smelt
