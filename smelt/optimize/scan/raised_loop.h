// Loops in other forms than a While, given the form of one over lists, so that what reads loops
// (loop.h) reads these too: frames of version 1, and loops that were unrolled.
#ifndef SMELT_OPTIMIZE_SCAN_RAISED_LOOP_H_
#define SMELT_OPTIMIZE_SCAN_RAISED_LOOP_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// Of a TensorListStack that stands for what gathers a TensorArray: the names of both.
inline constexpr absl::string_view kStackedBy = "_stacked_by", kArrayStacked = "_array_stacked";

// A While beside the nodes that it stands for, which stay until TakePlaces or Undo is called.
struct RaisedLoop {
  Node* node = nullptr;               // a StatelessWhile without functions
  std::unique_ptr<Graph> cond, body;  // callable graphs (passes.h)
  Node* where = nullptr;              // one of the nodes that it stands for
  std::vector<Node*> old;             // all of them
  std::vector<Node*> added;           // `node`, and what was added before and behind it
  // Readers of .first read .second.
  std::vector<std::pair<Endpoint, Endpoint>> outputs;
};

// Adds a loop for each frame of the graph, where its control flow is nothing but such loops, which
// treat a TensorArray as a list. Empty: there are none, or `why` says about `where` why they stay.
StatusOr<std::vector<RaisedLoop>> RaiseFrames(Graph& graph, Node** where, std::string* why);
// Adds a loop for the longest run of copies of one computation, each of which takes what the one
// before it made and the next of the slices that an Unpack makes. `node` is nullptr where there is
// none; of the first Unpack of enough slices `why` says why then. REQUIRES: no control flow of
// version 1, *where is nullptr.
StatusOr<RaisedLoop> RollUp(Graph& graph, Node** where, std::string* why);

// The loops take the places of the old nodes.
void TakePlaces(Graph& graph, std::vector<RaisedLoop>& loops);
// The old nodes stay, and what was added goes.
void Undo(Graph& graph, std::vector<RaisedLoop>& loops);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_SCAN_RAISED_LOOP_H_
