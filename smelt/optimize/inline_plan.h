// Which functions become part of their callers and which stay calls, so that what a model expands
// to is in proportion to a budget and not to how often its functions call each other.
#ifndef SMELT_OPTIMIZE_INLINE_PLAN_H_
#define SMELT_OPTIMIZE_INLINE_PLAN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/graph.h"

namespace smelt {

// The nodes that inlining may add to one graph.
inline constexpr int64_t kMaxInlinedNodes = 500'000;
// And to a graph and its functions together, each of which is optimized by itself.
inline constexpr int64_t kMaxInlinedNodesOfItem = 4 * kMaxInlinedNodes;

// Not thread safe.
class InlinePlan {
 public:
  // Appends the functions that a node of a function's body calls and that may be inlined there.
  using CalleesOf = std::function<void(const Graph& body, const Node& node,
                                       std::vector<const Function*>& callees)>;
  explicit InlinePlan(CalleesOf callees_of) : callees_of_(std::move(callees_of)) {}

  // True for a function that is never inlined: one of every circle of calls; one that becomes
  // larger than the budget, although its own callees of that size stay calls; one of every thousand
  // that call each other in a chain, for names grow with each.
  bool StaysCall(const Function& f) { return Measure(&f).stays; }
  // The nodes of its body when all calls in it are inlined that may be.
  int64_t Nodes(const Function& f) { return Measure(&f).nodes; }

 private:
  struct Size {
    int64_t nodes = 0;
    int depth = 1;
    bool open = true;  // its callees are being measured
    bool stays = false;
  };

  Size Measure(const Function* root);
  std::vector<const Function*> Open(const Function& f);

  const CalleesOf callees_of_;
  absl::flat_hash_map<const Function*, Size> sizes_;
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_INLINE_PLAN_H_
