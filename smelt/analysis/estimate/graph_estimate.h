// What a whole graph takes, with the functions that it calls.
#ifndef SMELT_ANALYSIS_ESTIMATE_GRAPH_ESTIMATE_H_
#define SMELT_ANALYSIS_ESTIMATE_GRAPH_ESTIMATE_H_

#include <span>
#include <string>

#include "smelt/graph/device_properties.h"
#include "smelt/graph/graph.h"

namespace smelt {

struct GraphEstimate {
  int64_t flops = 0;
  int64_t bytes = 0;        // read and written
  int64_t nanoseconds = 0;  // until the last node has run
  int64_t peak_bytes = 0;   // of the device that has the most
  int64_t nodes = 0;        // that run
  int64_t inaccurate = 0;   // of these, those with sizes that are not known, or of unknown ops
};

// Of a run that gives `fetches` ("node:port"; empty: what nobody reads) and gets `feeds`. Calls
// take what their functions take, of branches all, of loop bodies one turn; functions that call
// themselves, and those within many others, count as nothing. Nothing at all where no node can
// begin.
GraphEstimate EstimateGraph(const Graph& graph, std::span<const std::string> feeds,
                            std::span<const std::string> fetches,
                            std::span<const DeviceProperties> devices);

}  // namespace smelt

#endif  // SMELT_ANALYSIS_ESTIMATE_GRAPH_ESTIMATE_H_
