// Which programs may read a graph: GraphDef's VersionDef.
#ifndef SMELT_WIRE_GRAPH_DEF_GRAPH_VERSIONS_H_
#define SMELT_WIRE_GRAPH_DEF_GRAPH_VERSIONS_H_

#include <vector>

namespace smelt {

struct GraphVersions {
  int producer = 0;
  int min_consumer = 0;
  std::vector<int> bad_consumers;
};

}  // namespace smelt

#endif  // SMELT_WIRE_GRAPH_DEF_GRAPH_VERSIONS_H_
