// Cuts the part of a graph that one kind of request needs.
#ifndef SMELT_RUNTIME_CALLABLE_GRAPH_H_
#define SMELT_RUNTIME_CALLABLE_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// A callable graph (optimize/passes.h): feed i is _Arg i, fetch i is _Retval i, targets are roots.
// Feeding an output cuts what computed it off. NOT_FOUND and INVALID_ARGUMENT as TensorFlow's for
// names that are not there, fed twice, or fed and fetched.
StatusOr<std::unique_ptr<Graph>> CutCallable(const Graph& graph,
                                             const std::vector<std::string>& feeds,
                                             const std::vector<std::string>& fetches,
                                             const std::vector<std::string>& targets);

}  // namespace smelt

#endif  // SMELT_RUNTIME_CALLABLE_GRAPH_H_
