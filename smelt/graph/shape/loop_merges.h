// Shapes of what loops of version 1 pass from turn to turn. A Merge that begins a turn has at first
// the shape that it has in the first; what a turn makes of it is compared then. A size that differs
// once is the Merge's own from then on, so that this ends.
#ifndef SMELT_GRAPH_SHAPE_LOOP_MERGES_H_
#define SMELT_GRAPH_SHAPE_LOOP_MERGES_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "smelt/graph/graph.h"
#include "smelt/tensor/shape.h"

namespace smelt {

// Does the value come from the turn before?
bool IsBackEdge(const Endpoint& e);
// Does the node begin the turns of a loop?
bool IsLoopMerge(const Node& n);

struct LoopMerge {
  const Node* node;
  PartialShape shape, held;
  std::vector<bool> own_shape, own_held;  // by dimension
};

class LoopMerges {
 public:
  // Gives sizes that are not known names, where the inference has such.
  using Name = absl::FunctionRef<void(PartialShape&)>;

  bool empty() const { return merges_.empty(); }
  std::vector<LoopMerge>& all() { return merges_; }
  // What is held true of the node; nullptr: it was not begun.
  const LoopMerge* Find(const Node& n) const;
  const LoopMerge& Begin(const Node& n, PartialShape shape, PartialShape held);
  // Keeps of the merge what the shapes of the next turn have as well. True where that is less.
  static bool Widen(LoopMerge& merge, const PartialShape& shape, const PartialShape& held,
                    Name name);
  // Nothing is known of the merge. True where something was.
  static bool Forget(LoopMerge& merge);

 private:
  std::vector<LoopMerge> merges_;
  absl::flat_hash_map<int, size_t> of_;  // by node id
};

}  // namespace smelt

#endif  // SMELT_GRAPH_SHAPE_LOOP_MERGES_H_
