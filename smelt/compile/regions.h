// Regions: the parts of a graph that can be compiled once the shapes of what flows into them are
// known.
#ifndef SMELT_COMPILE_REGIONS_H_
#define SMELT_COMPILE_REGIONS_H_

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/graph/graph.h"

namespace smelt {

// A node of op _Program, and the graph that it stands for: input i is the _Arg with index i, output
// i the _Retval with index i. Nodes keep their names.
struct Region {
  Node* node = nullptr;
  std::unique_ptr<Graph> body;
};

// May the node be part of a region? Its outputs are numbers, depend on its inputs' values alone,
// and have a kernel.
bool IsCompilable(const Node& node);
// What stands against it, as "has an effect"; empty: it may.
absl::string_view WhyNotCompilable(const Node& node);

// Replaces compilable nodes of `graph`, a callable graph without control flow of version 1, by one
// _Program node for each region; nodes wait for what they waited for. Regions are as few as the
// other nodes between them allow; what would be a region of fewer than `least` nodes stays.
StatusOr<std::vector<Region>> CutRegions(Graph& graph, int least);

}  // namespace smelt

#endif  // SMELT_COMPILE_REGIONS_H_
