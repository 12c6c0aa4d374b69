// A copy of a branch's function that takes what the branch needs, and no more.
#ifndef SMELT_OPTIMIZE_BRANCHES_SPECIALIZE_BRANCH_H_
#define SMELT_OPTIMIZE_BRANCHES_SPECIALIZE_BRANCH_H_

#include <string>
#include <vector>

#include "smelt/optimize/branches/plan.h"

namespace smelt {

// What the functions of a planned node will be given.
struct BranchOperands {
  std::vector<Endpoint> values;
  // From there on they are constants, each there for what it waits for.
  int first_wait = 0;
  // The position of `e`, or of what stands for waiting for `node`; -1: it is not given.
  int Find(Endpoint e) const;
  int FindWait(const Node* node) const;

  // Positions are those of values; the port is -1 for a wait.
  absl::flat_hash_map<std::pair<const Node*, int>, int> positions;
};

// In the order in which the branches first use them, as TensorFlow has it. May add constants to the
// graph, which stand for waiting for nodes that give nothing.
StatusOr<BranchOperands> OperandsOf(Graph& graph, const BranchPlan& plan, BranchPlanner& planner);

// The copy, under its name in no library yet.
StatusOr<std::unique_ptr<Function>> SpecializeBranch(const BranchPlan& plan, size_t branch,
                                                     const BranchOperands& operands,
                                                     absl::string_view name);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_BRANCHES_SPECIALIZE_BRANCH_H_
