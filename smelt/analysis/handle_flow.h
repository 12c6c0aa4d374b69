// Where resource handles go: through identities, calls, branches and loops, into the bodies of the
// functions that are called with them, and out again as results; into frames and branches of
// version 1, which nobody takes a handle out of.
//
// A handle is a number that the caller chooses (a variable, a table). An endpoint may hold several:
// a function that is called with different variables for one argument holds all of them. Reads
// the graphs as they are at each Follow. Not thread safe.
#ifndef SMELT_ANALYSIS_HANDLE_FLOW_H_
#define SMELT_ANALYSIS_HANDLE_FLOW_H_

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/graph/graph.h"

namespace smelt {

// A place where a handle is used.
struct HandleUse {
  Function* function = nullptr;  // nullptr: the main graph
  Node* node = nullptr;
  int input = 0;
};

class HandleFlow {
 public:
  explicit HandleFlow(const Graph& main) : main_(main) {}

  // `e`, of the function's body (nullptr: of the main graph), holds the handle.
  void Hold(int handle, Function* function, Endpoint e);
  // Follows what has been held since the last call, in no useful order, and calls `use` for every
  // use but those that pass the handle on: identities, Enter, Switch, and calls of functions that
  // the library has.
  void Follow(absl::FunctionRef<void(int handle, const HandleUse&)> use);

  // What the endpoint may hold, ascending.
  const std::set<int>& Of(Endpoint e) const;

 private:
  class Walk;
  struct Item {
    int handle;
    Function* function;
    Endpoint e;
  };

  const Graph& main_;
  std::vector<Item> queue_;
  std::map<std::pair<const Node*, int>, std::set<int>> holds_;
};

}  // namespace smelt

#endif  // SMELT_ANALYSIS_HANDLE_FLOW_H_
