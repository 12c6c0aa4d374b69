// A function's body as a graph that passes rewrite.
#ifndef SMELT_OPTIMIZE_FUNCTION_ITEM_H_
#define SMELT_OPTIMIZE_FUNCTION_ITEM_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/graph.h"

namespace smelt {

// The body is a callable graph (passes.h): results are _Retval nodes, arguments are fed, nodes of
// control results and nodes with state are roots, so that the function does all that it did. It is
// a copy: whoever calls the function meanwhile, itself maybe, sees it as it was. Not thread safe.
class FunctionItem {
 public:
  explicit FunctionItem(Function& f) : function_(f) {}
  // Makes the body. `keep`: nodes that stay as well. May be called once.
  Status Open(const std::vector<std::string>& keep);
  // After Open; may be replaced by another graph.
  Graph& body() { return *copy_->body; }
  // Puts the body into the function. INTERNAL when an argument, a result or a control result is
  // gone.
  Status Close();
  // The nodes that are asked for by name, of control results and of `keep`.
  const absl::flat_hash_set<std::string>& asked_for() const { return asked_for_; }

 private:
  Function& function_;
  std::unique_ptr<Function> copy_;
  absl::flat_hash_set<std::string> asked_for_;
  std::vector<size_t> results_;                                // how many tensors each has
  std::vector<std::pair<std::string, std::string>> controls_;  // name of the result, of the node
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_FUNCTION_ITEM_H_
