// Who reads what, kept while a pass redirects readers: Graph::ReplaceAll reads the whole graph each
// time, this only those who are concerned.
#ifndef SMELT_GRAPH_READERS_H_
#define SMELT_GRAPH_READERS_H_

#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// While it lives nodes may be added and removed. Inputs of a node change through it alone from the
// first call after the node was added on; setting one back to what it was is allowed, too.
class Readers {
 public:
  explicit Readers(Graph& graph) : graph_(graph) {}
  // As Graph's functions of the same names.
  void ReplaceAll(Endpoint from, Endpoint to);
  void ReplaceControl(Node* from, Node* to);

 private:
  void CatchUp();

  Graph& graph_;
  int seen_ = 0;                         // nodes with a lower id are known
  std::vector<std::vector<int>> reads_;  // by id: who reads it, waits for it, or once did
};

}  // namespace smelt

#endif  // SMELT_GRAPH_READERS_H_
