#include "smelt/graph/readers.h"

#include <algorithm>

namespace smelt {

void Readers::CatchUp() {
  reads_.resize(graph_.max_id());
  for (; seen_ < graph_.max_id(); ++seen_) {
    const Node* n = graph_.NodeOf(seen_);
    if (n == nullptr) continue;
    for (const Endpoint& e : n->inputs) reads_[e.node->id()].push_back(seen_);
    for (const Node* c : n->control_inputs) reads_[c->id()].push_back(seen_);
  }
}

void Readers::ReplaceAll(Endpoint from, Endpoint to) {
  CatchUp();
  const std::vector<int> readers = reads_[from.node->id()];
  for (const int id : readers) {
    Node* n = graph_.NodeOf(id);
    if (n == nullptr) continue;
    bool reads = false;
    for (Endpoint& e : n->inputs) {
      if (e != from) continue;
      e = to;
      reads = true;
    }
    if (reads && to.node != from.node) reads_[to.node->id()].push_back(id);
  }
}

void Readers::ReplaceControl(Node* from, Node* to) {
  CatchUp();
  const std::vector<int> readers = reads_[from->id()];
  for (const int id : readers) {
    Node* n = graph_.NodeOf(id);
    if (n == nullptr) continue;
    auto& c = n->control_inputs;
    if (std::erase(c, from) == 0 || to == nullptr) continue;
    if (std::ranges::find(c, to) == c.end()) c.push_back(to);
    reads_[to->id()].push_back(id);
  }
}

}  // namespace smelt
