// Loops of version 1 (frames of Enter, Merge, Switch, NextIteration and Exit, and TensorArrays) in
// the form of a While over lists, so that what reads loops (loop.h) reads these too.
#ifndef SMELT_OPTIMIZE_SCAN_FRAME_LOOPS_H_
#define SMELT_OPTIMIZE_SCAN_FRAME_LOOPS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// A loop beside the frame that it stands for. One thread.
struct FrameLoop {
  // A StatelessWhile without functions, whose outputs stand for those of the frame's Exits.
  Node* node = nullptr;
  std::unique_ptr<Graph> cond, body;  // callable graphs (passes.h)
  Node* loop_cond = nullptr;          // the frame's
  std::vector<Node*> frame;           // its nodes, and those of the arrays that lists stand for
  std::vector<Node*> added;           // what was added before and behind `node`, itself included
  // Readers of .first read .second.
  std::vector<std::pair<Endpoint, Endpoint>> outputs;
};

// Adds a loop for each frame of the graph, where its control flow is nothing but such loops; empty
// and `why` says about `where` why it is not: the graph is as it was then. The frames stay until
// DropFrames or UndoFrames is called with the loops.
StatusOr<std::vector<FrameLoop>> RaiseFrames(Graph& graph, Node** where, std::string* why);
// The loops take the places of the frames.
void DropFrames(Graph& graph, std::vector<FrameLoop>& loops);
// The frames stay, and what was added goes.
void UndoFrames(Graph& graph, std::vector<FrameLoop>& loops);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_SCAN_FRAME_LOOPS_H_
