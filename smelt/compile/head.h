// Where a plan whose rows run in parts goes on with all rows at once: its last actions, such as the
// layer that classifies what an image network has found, may read so many weights, and of so few
// values, that reading them for every part costs more than keeping rows apart saves.
#ifndef SMELT_COMPILE_HEAD_H_
#define SMELT_COMPILE_HEAD_H_

#include <optional>
#include <set>

#include "smelt/compile/plan.h"

namespace smelt {

// The last actions of a plan, which read one value of the others.
struct PlanHead {
  Endpoint cut;                 // that value
  std::set<const Node*> nodes;  // the actions'
  int64_t weights = 0;          // bytes of constants that they read
};

// The one with the most weights, which are more bytes than its values, and none of whose actions
// reads and makes more than `bytes` of those; results are made in it. `rows` are dimension 0 of the
// value that it reads. nullopt: there is none, or its weights are few.
std::optional<PlanHead> FindHead(const Plan& plan, int64_t rows, int64_t bytes);

// Leaves the plan of the same body, for any number of rows, without the head's actions: its only
// result is the value that the head reads. False, and the plan is as it was, where that value is
// not computed in it.
bool DropHead(const PlanHead& head, Plan& plan);
// Leaves only the head's actions: the value that they read is argument `number`.
bool KeepHead(const PlanHead& head, int number, Plan& plan);

}  // namespace smelt

#endif  // SMELT_COMPILE_HEAD_H_
