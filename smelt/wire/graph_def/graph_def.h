// GraphDef and FunctionDef <-> Graph and Function.
//
// Edges are names on the wire: "node:2" or "^node" in a graph; in a function body "argument",
// "node:output:2" or "^node". A Graph holds pointers and ports, so both directions go through the
// definitions of the ops. Nodes whose op nobody defines have as many outputs as readers name.
#ifndef SMELT_WIRE_GRAPH_DEF_GRAPH_DEF_H_
#define SMELT_WIRE_GRAPH_DEF_GRAPH_DEF_H_

#include <memory>

#include "smelt/graph/graph.h"
#include "smelt/wire/graph_def/graph_versions.h"

namespace tensorflow {
class FunctionDef;
class GraphDef;
}  // namespace tensorflow

namespace smelt {

// The graph; the functions of `def` are added to `library`, which holds the model's own ops
// already. All that a Graph represents is moved out of `def`: what remains is what smelt only
// carries. INVALID_ARGUMENT names the node and function whose parts contradict each other;
// RESOURCE_EXHAUSTED when attributes claim far more tensors than so many nodes have. After an error
// `library` must not be used.
StatusOr<std::unique_ptr<Graph>> TakeGraph(tensorflow::GraphDef* def,
                                           std::shared_ptr<FunctionLibrary> library,
                                           GraphVersions* versions);

// Adds the graph, its functions and versions to `def`, which may hold carried fields.
// INVALID_ARGUMENT when an edge has no name on the wire, INTERNAL when carried bytes do not parse.
// Without bodies functions have their signatures and attributes alone.
enum class FunctionBodies { kWhole, kNone };
Status GraphToProto(const Graph& graph, const GraphVersions& versions, tensorflow::GraphDef* def,
                    FunctionBodies bodies = FunctionBodies::kWhole);
Status FunctionToProto(const Function& function, tensorflow::FunctionDef* def);

// Gives an opaque node of a main graph the output that `name` ("node:2") refers to, for readers
// that are not in the graph, such as signatures. Names of other nodes, and what is no name, change
// nothing.
void NoteReader(const Graph& graph, absl::string_view name);

}  // namespace smelt

#endif  // SMELT_WIRE_GRAPH_DEF_GRAPH_DEF_H_
