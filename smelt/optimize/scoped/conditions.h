// Under which conditions a node runs, in graphs with Switch and Merge.
#ifndef SMELT_OPTIMIZE_SCOPED_CONDITIONS_H_
#define SMELT_OPTIMIZE_SCOPED_CONDITIONS_H_

#include <map>
#include <utility>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// Of the nodes that the graph has now. Nodes of one loop frame whose conditions are the same run in
// the same turns, or none of them does.
class Conditions {
 public:
  static StatusOr<Conditions> Of(const Graph& graph);
  // A number for each set of conditions; -1: too many to tell, or the node was added later.
  int of(const Node& node) const;

 private:
  // Predicates, by node id, and the sides of their Switches.
  using Set = std::vector<std::pair<int, int>>;

  int Intern(Set set);
  int Union(int a, int b);

  std::vector<Set> sets_;
  std::map<Set, int> numbers_;
  std::map<std::pair<int, int>, int> unions_;
  std::vector<int> of_;  // by node id
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_SCOPED_CONDITIONS_H_
