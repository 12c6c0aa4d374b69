// State of a model in its .tflite file: a subgraph that fills variables and tables, which runs once
// before whatever signature is asked for first.
#ifndef SMELT_LITE_INIT_GRAPH_H_
#define SMELT_LITE_INIT_GRAPH_H_

#include <memory>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/kernels/resource_manager.h"

namespace smelt {

// The name of its subgraph.
inline constexpr absl::string_view kInitSubgraph = "initialize";
// On a "tfl.hashtable": where the table is kept (strings).
inline constexpr absl::string_view kTableContainer = "_container", kTableName = "_table";

// Gives the tables of all graphs their numbers, and returns the graph that fills them and the
// variables of the graphs with what `resources` holds; nullptr where there are none.
StatusOr<std::unique_ptr<Graph>> InitGraph(const ResourceManager& resources,
                                           const std::vector<Graph*>& graphs);
// The graph calls it before whatever has to do with state.
Status CallInitFirst(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_INIT_GRAPH_H_
