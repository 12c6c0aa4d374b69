// Loops of version 1: which nodes belong to which.
#ifndef SMELT_OPTIMIZE_FUNCTIONS_FRAMES_H_
#define SMELT_OPTIMIZE_FUNCTIONS_FRAMES_H_

#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// Of the nodes that the graph has now.
class Frames {
 public:
  explicit Frames(const Graph& graph);
  // What runs in each turn of the loop that the node is in; nullptr: it is in none, or was added
  // later.
  Node* StartOf(const Node& node) const;

 private:
  std::vector<Node*> enters_;  // by node id: an Enter of the innermost loop, nullptr: in none
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_FUNCTIONS_FRAMES_H_
