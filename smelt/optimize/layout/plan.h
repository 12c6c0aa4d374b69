// Which nodes of a graph change their format, and how each of their inputs and outputs changes with
// it. Nothing is changed here (apply.h does).
#ifndef SMELT_OPTIMIZE_LAYOUT_PLAN_H_
#define SMELT_OPTIMIZE_LAYOUT_PLAN_H_

#include <deque>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "smelt/optimize/layout/rows.h"

namespace smelt::layout {

using Forms = absl::InlinedVector<Form, 6>;

struct NodePlan {
  Node* node = nullptr;
  const LayoutRow* row = nullptr;
  const Formats* formats = nullptr;
  bool sensitive = false;
  Forms inputs, outputs;
  int vector_input = -1;  // that is read along the last dimension, and has to be told so
};

// The row of an op that states its format, or of one that is agnostic; nullptr: it is no such op.
const LayoutRow* FindSensitiveRow(const Node& n);
const LayoutRow* FindAgnosticRow(const Node& n);

// Tells the shapes of `r` the ranks of what goes around loops, where whatever enters one comes back
// with the same rank. REQUIRES: `order` is the graph's topological one.
void FindLoopRanks(std::span<Node* const> order, Rewriter& r);

class LayoutPlan {
 public:
  // The graph must not change while the plan is used. `conversion` must outlive it.
  LayoutPlan(const Conversion& conversion, Rewriter& r);

  // Decides for every node. INVALID_ARGUMENT names a cycle.
  Status Make();

  // nullptr: the node stays as it is.
  const NodePlan* Of(const Node& node) const {
    const auto id = static_cast<size_t>(node.id());
    return id < places_.size() && places_[id] >= 0 ? &plans_[static_cast<size_t>(places_[id])]
                                                   : nullptr;
  }
  // Those that change, sensitive ones first, inputs before readers: in the order of TensorFlow.
  std::vector<const NodePlan*> Changes() const;
  // Does a node run before the other in that order?
  bool IsBefore(const Node& a, const Node& b) const {
    return places_[static_cast<size_t>(a.id())] < places_[static_cast<size_t>(b.id())];
  }

 private:
  void TryNode(Node* n, const LayoutRow& row, bool sensitive);
  absl::string_view WhyNot(const Node& n, const NodePlan& plan) const;
  bool VectorsFit(const Node& n, const NodePlan& plan) const;
  // The format of the new kind that `e` comes in, or comes in once what is between is changed.
  bool Follows(Endpoint e, const Formats& formats) const;
  bool FollowsAnyInput(const Node& n, const LayoutRow& row, const Formats& formats) const;
  void FindFollowers();
  bool MayFollow(const Node& n, const NodePlan& plan) const;
  void MarkFollower(const Node& n);
  void DropBrokenLoops();

  const Conversion& conversion_;
  Rewriter& r_;
  std::vector<int> places_;       // in plans_, by id of the node; -1: none
  std::deque<NodePlan> plans_;    // in the order in which they were made
  std::vector<uint8_t> follows_;  // by id: kImages, kVolumes
};

}  // namespace smelt::layout

#endif  // SMELT_OPTIMIZE_LAYOUT_PLAN_H_
