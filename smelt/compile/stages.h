// Stages: a plan whose rows may run in parts is cut where one value is all that is left, and each
// piece takes as many rows at a time as suits it. Where values are large and weights few, few rows
// stay in a core's own cache; where weights are many, which every part reads anew, and values
// small, all rows go at once. Image networks begin as the one and end as the other.
#ifndef SMELT_COMPILE_STAGES_H_
#define SMELT_COMPILE_STAGES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "smelt/compile/plan.h"

namespace smelt {

// Where a plan may be cut: what the actions from `action` on read of those before is one value.
struct PlanCut {
  size_t action = 0;
  int value = -1;  // has bytes of its own in the arena
};

// In order, at most about a hundred: those of the smallest values. No cut parts what the steps that
// follow Lower make one action of.
std::vector<PlanCut> FindCuts(const Plan& plan);

struct PlanStage {
  absl::flat_hash_set<const Node*> nodes;  // of its actions
  // What it makes for the next one, and the shape of that for all rows. Of the last stage node is
  // nullptr: it makes the results.
  Endpoint makes;
  Shape shape;
  int64_t part = 0;  // rows at a time; 0: all rows at once, by the whole team
};

// The stages of a plan of `rows` rows, of which each cut's value has as many bytes for each, one
// row after the other. `work`: multiply-adds of all rows.
std::vector<PlanStage> ChooseStages(const Plan& plan, std::span<const PlanCut> cuts, int64_t rows,
                                    int64_t work, Reasons* reasons);

// For tests: from now on stages are drawn by this number, whatever they cost. Any thread.
void DrawStages(uint64_t number);

// A thread is worth waking for so many multiply-adds.
inline constexpr int64_t kLeastWork = int64_t{1} << 20;
// Bytes of constants that a run reads.
int64_t WeightsOf(const Plan& plan);
// Of a core's own cache.
int64_t OwnCacheBytes();

// The plan of stages[index] alone, out of Lower's for any number of rows: what the stage before
// makes is argument `argument`. INTERNAL where the stage needs anything else that it does not make.
StatusOr<Plan> PlanOfStage(const Plan& plan, std::span<const PlanStage> stages, size_t index,
                           int argument);

}  // namespace smelt

#endif  // SMELT_COMPILE_STAGES_H_
