// What a node that chooses between functions (If, Case) can do without, and what its functions can
// take in.
#ifndef SMELT_OPTIMIZE_BRANCHES_PLAN_H_
#define SMELT_OPTIMIZE_BRANCHES_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/optimize/functions/dead_values.h"
#include "smelt/optimize/inline_plan.h"
#include "smelt/optimize/passes.h"

namespace smelt {

// What becomes of one If or Case. Operand i of it is input i + 1 and argument i of its functions.
struct BranchPlan {
  Node* node = nullptr;
  std::vector<const Function*> functions;  // one for each branch
  std::vector<bool> dropped;               // by operand: no branch needs it
  // By branch: nodes that move into it, readers before what they read.
  std::vector<std::vector<Node*>> sunk;
  bool ChangesAnything() const;
};

// How a function uses its arguments. Functions must not change while this is held.
struct ArgumentUses {
  std::vector<bool> used;
  std::vector<int> forward;  // those that are used, in the order of their first use
  // The same from the last node to the first, together where one node reads several.
  std::vector<std::vector<int>> backward;
};

// Plans for the nodes of one graph. Not thread safe.
class BranchPlanner {
 public:
  BranchPlanner(Graph& graph, const PassContext& context);

  // nullopt: the node is left as it is; it is none of these, or its functions may not be copied.
  std::optional<BranchPlan> Plan(Node* node);
  const ArgumentUses& UsesOf(const Function& f);

 private:
  std::string WhyNot(const Node& node, const Function* f);
  bool MayDie(Endpoint e);
  bool MaySink(const Node& x) const;
  void Sink(BranchPlan& plan, size_t branch, const std::vector<int>& only_in);

  Graph& graph_;
  const PassContext& context_;
  std::optional<DeadValues> dead_values_;
  absl::flat_hash_map<const Function*, ArgumentUses> uses_;
  InlinePlan circles_;
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_BRANCHES_PLAN_H_
