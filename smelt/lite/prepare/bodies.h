// Branches and loops as a .tflite file has them: each node with functions of its own, which get
// numbers, texts and booleans alone.
#ifndef SMELT_LITE_PREPARE_BODIES_H_
#define SMELT_LITE_PREPARE_BODIES_H_

#include <functional>

#include "smelt/graph/graph.h"

namespace smelt {

// An If, Case or While of the graph calls copies of its functions, in the graph's library. What
// their operands are constants or name resources (VarHandleOp, tables), and loops leave as they
// are, moves into them. Lists (TensorListReserve and so on) become tensors of one dimension more,
// the first. `optimize` is run over each body, and over the graph at the end. Nodes that this
// cannot be done for stay, and have the attribute kWhyNot (common/attributes.h).
//
// REQUIRES: a callable graph (optimize/passes.h) whose arguments state their shapes
// (kOutputShapes), with its calls inlined.
Status OwnBodies(Graph& graph, const std::function<Status(Graph&)>& optimize);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_BODIES_H_
