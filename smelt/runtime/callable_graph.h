// Cuts the part of a graph that one kind of request needs.
#ifndef SMELT_RUNTIME_CALLABLE_GRAPH_H_
#define SMELT_RUNTIME_CALLABLE_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// A callable graph (optimize/passes.h): feed i is _Arg i, fetch i is _Retval i, targets are roots.
// Feeds and fetches are "node:port" or "node" (port 0). Nodes that only a fed tensor needed are
// left out; a tensor both fed and fetched is passed through. NOT_FOUND for names that are not in
// the graph; INVALID_ARGUMENT for a tensor fed twice or of unknown type, for nodes of a call (_Arg,
// _Retval) of the graph's own, and without fetch and target.
StatusOr<std::unique_ptr<Graph>> CutCallable(const Graph& graph,
                                             const std::vector<std::string>& feeds,
                                             const std::vector<std::string>& fetches,
                                             const std::vector<std::string>& targets);

}  // namespace smelt

#endif  // SMELT_RUNTIME_CALLABLE_GRAPH_H_
