// A node of another graph, or of the same, once more.
#ifndef SMELT_GRAPH_COPY_NODE_H_
#define SMELT_GRAPH_COPY_NODE_H_

#include "smelt/graph/graph.h"

namespace smelt {

// Adds a node of `of`'s op, attributes, device and types, and of what smelt only carries, without
// edges. Its name is `name`, made free.
StatusOr<Node*> AddCopy(Graph& graph, const Node& of, absl::string_view name);

}  // namespace smelt

#endif  // SMELT_GRAPH_COPY_NODE_H_
