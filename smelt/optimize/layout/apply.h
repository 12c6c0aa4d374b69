// Changes the formats of nodes as a plan says: their attributes, and what has to stand between them
// and nodes that stay.
#ifndef SMELT_OPTIMIZE_LAYOUT_APPLY_H_
#define SMELT_OPTIMIZE_LAYOUT_APPLY_H_

#include "smelt/optimize/layout/plan.h"

namespace smelt::layout {

// Between two nodes that change alike nothing is added. The plan is of no use afterwards. Errors
// are those of Graph::Add.
Status ApplyPlan(const Conversion& conversion, const LayoutPlan& plan, Rewriter& r);

// Transpose(Pad(Transpose(x))) -> Pad(x), where the transpositions undo each other: they become
// identities, and the paddings are permuted.
Status CancelAroundPads(Rewriter& r);

}  // namespace smelt::layout

#endif  // SMELT_OPTIMIZE_LAYOUT_APPLY_H_
