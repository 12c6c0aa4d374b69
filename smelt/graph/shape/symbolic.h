// Shape inference for those that do not trust what requests feed (infer.h has the rest).
#ifndef SMELT_GRAPH_SHAPE_SYMBOLIC_H_
#define SMELT_GRAPH_SHAPE_SYMBOLIC_H_

#include "absl/functional/function_ref.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {

// InferSymbolicShapes, but nothing is known of the outputs of nodes for which `from_outside` is
// true, whatever they say of themselves: a request may feed a tensor of any shape. Thread safe as
// long as nobody changes the graph.
ShapeTable InferSymbolicShapesBeside(const Graph& graph, MoreShapeRules more,
                                     absl::FunctionRef<bool(const Node&)> from_outside);

}  // namespace smelt

#endif  // SMELT_GRAPH_SHAPE_SYMBOLIC_H_
