// The rules that every graph keeps. Checked before a model is converted, before the graph of a
// request or call is optimized, and on demand between passes (optimize/pipeline.h). Any thread,
// while nobody changes the graph.
#ifndef SMELT_GRAPH_VERIFY_H_
#define SMELT_GRAPH_VERIFY_H_

#include "smelt/graph/graph.h"

namespace smelt {

// OK when, for every node of the graph:
//   - its name is one that TensorFlow accepts;
//   - every edge comes from a node of the graph, out of a port that the node has; no node waits for
//     itself, and no cycle but a version 1 loop closes;
//   - inputs are as many as the definition wants, of the types that it wants (a reference may be
//     read as its base type, an unknown type as any); the types noted at the node are the
//     definition's;
//   - every attribute of the definition is there or has a default, of the kind stated, within the
//     allowed values and minimum; a placeholder may stand for any;
//   - a function that an attribute names is in the library, or its name is that of an op.
// Else INVALID_ARGUMENT (NOT_FOUND for a function) names the node and the rule. Opaque nodes: names
// and edges only.
Status Verify(const Graph& graph);
// The same answer, in the time that it takes to look at the nodes that were touched since
// VerifyChanges last said OK of this graph. Not for graphs that other threads look at.
Status VerifyChanges(Graph& graph);

// Verify of the body, and: arguments are _Arg nodes of the body in the order of the signature,
// results are outputs of the body of the types that the signature states, and no other node is an
// _Arg or _Retval. Errors name the function.
Status VerifyFunction(const Function& function);

// A name like the function's that a node may have. Functions may have any (<lambda>, of Python),
// those of TensorFlow 2 begin with underscores.
std::string NodeNameOfFunction(absl::string_view function);

// The graph and every function of its library.
Status VerifyAll(const Graph& graph);

}  // namespace smelt

#endif  // SMELT_GRAPH_VERIFY_H_
