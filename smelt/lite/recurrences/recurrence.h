// Loops that became _Scan nodes (own_ops.txt) for a file: those that compute an LSTM are its
// operator, whatever wrote them; the others are loops over arrays.
#ifndef SMELT_LITE_RECURRENCES_RECURRENCE_H_
#define SMELT_LITE_RECURRENCES_RECURRENCE_H_

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {

// The parts of a _Scan node and of its body.
struct Scan {
  Node* node = nullptr;
  Graph* body = nullptr;
  int states = 0, rows = 0, arrays = 0, rest = 0;
  std::vector<Node*> args;     // of the body: states, rows, rest
  std::vector<Node*> results;  // states, arrays, and whether it goes on
  std::vector<bool> last;      // by array

  Endpoint steps() const { return node->input(0); }
  Endpoint state(int i) const { return node->input(1 + i); }
  Endpoint row(int i) const { return node->input(1 + states + i); }
  Endpoint length(int i) const { return node->input(1 + states + rows + i); }
  Endpoint rest_of(int i) const { return node->input(1 + states + rows + arrays + i); }
};
StatusOr<Scan> ReadScan(Node* node, std::span<const std::unique_ptr<Graph>> bodies);

// Replaces the node by an LSTM; false, and `why` says why, where the body computes something else.
// REQUIRES: shapes are those of `graph`.
StatusOr<bool> TakeLstm(Graph& graph, const Scan& scan, const ShapeTable& shapes, std::string* why);

// Replaces every _Scan node of the graph. Those that nothing replaces stay. `off`: names of
// fusions that are not wanted ("FuseLstm").
Status TakeScans(Graph& graph, std::span<const std::unique_ptr<Graph>> bodies,
                 const std::set<std::string, std::less<>>& off, std::vector<FusionNote>* notes);

}  // namespace smelt

#endif  // SMELT_LITE_RECURRENCES_RECURRENCE_H_
