// Which values may be dead: they come from a Switch. A call runs when none of its arguments is
// dead; a body whose results do not read all of them would run with the others.
#ifndef SMELT_OPTIMIZE_FUNCTIONS_DEAD_VALUES_H_
#define SMELT_OPTIMIZE_FUNCTIONS_DEAD_VALUES_H_

#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

class DeadValues {
 public:
  // Looks at the nodes that the graph has now.
  explicit DeadValues(const Graph& graph);
  // False only where the value is never dead, or not unless all of what the call around it became
  // is.
  bool MayDie(Endpoint e) const;
  // Nodes that a call became, in an order with inputs before readers. `together`: all of them wait
  // for what the call waited for, so that they die together.
  void AddBody(const std::vector<Node*>& body, bool together);

 private:
  bool Marked(const Node& n) const;
  void Mark(const Node& n);

  std::vector<bool> marked_;  // by node id
};

// The inputs of a call, of those in `dying`, on which not everything that `f` gives or does
// depends.
std::vector<int> NotNeededByAll(const Function& f, const std::vector<int>& dying);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_FUNCTIONS_DEAD_VALUES_H_
