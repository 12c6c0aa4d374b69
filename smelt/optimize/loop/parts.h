// The parts of the loop optimizer, each by itself.
#ifndef SMELT_OPTIMIZE_LOOP_PARTS_H_
#define SMELT_OPTIMIZE_LOOP_PARTS_H_

#include "smelt/optimize/passes.h"

namespace smelt {

// A push onto a stack that nobody pops from only passes its value on.
Status RemoveStackPushes(Graph& graph, const PassContext& context);
// What a Switch of a constant predicate, or a loop that ends before its first turn, never runs
// goes. Sides that hold what must stay are left whole.
Status RemoveDeadBranches(Graph& graph, const PassContext& context);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_LOOP_PARTS_H_
