// A function's body as a graph that passes rewrite.
#ifndef SMELT_OPTIMIZE_FUNCTION_ITEM_H_
#define SMELT_OPTIMIZE_FUNCTION_ITEM_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/graph.h"

namespace smelt {

// While it lives, f.body is a callable graph (passes.h): results are _Retval nodes, arguments are
// fed, nodes of control results and nodes with state are roots, so that the function does all that
// it did. f.args, f.results and f.control_results are of no use meanwhile. Not thread safe.
class FunctionItem {
 public:
  explicit FunctionItem(Function& f) : function_(f) {}
  // `keep`: nodes that stay as well. May be called once.
  Status Open(const std::vector<std::string>& keep);
  // Makes the function whole again with what f.body holds by then, which may be another graph.
  // INTERNAL when an argument, a result or a control result is gone.
  Status Close();
  // The nodes that are asked for by name, of control results and of `keep`.
  const absl::flat_hash_set<std::string>& asked_for() const { return asked_for_; }

 private:
  Function& function_;
  absl::flat_hash_set<std::string> asked_for_;
  std::vector<size_t> results_;                                // how many tensors each has
  std::vector<std::pair<std::string, std::string>> controls_;  // name of the result, of the node
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_FUNCTION_ITEM_H_
