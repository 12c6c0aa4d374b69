// Graphs as pictures: text for graphviz, and its program dot, which makes SVG of it.
#ifndef SMELT_CLI_PICTURE_H_
#define SMELT_CLI_PICTURE_H_

#include <string>

#include "smelt/base/status.h"
#include "smelt/graph/graph.h"

namespace smelt {

// The graph in graphviz's language. Where it has more than some hundred nodes, name scopes are one
// box each, as deep as that many boxes allow, and nodes without a scope one for each op: what dot
// gets is small whatever the graph is.
std::string DotText(const Graph& graph);

// Runs dot, which is looked for in PATH. UNAVAILABLE: it is not there; DEADLINE_EXCEEDED: it took
// more than ten seconds and was ended; INTERNAL: it failed. No file is left then. Thread safe.
Status DrawDot(const std::string& dot_path, const std::string& svg_path);

}  // namespace smelt

#endif  // SMELT_CLI_PICTURE_H_
