#include "smelt/kernels/node_error.h"

#include "absl/strings/match.h"

namespace smelt {

std::string NodeInError(const std::string& function, const Node& node) {
  return function.empty()
             ? absl::StrCat("[[{{node ", node.name(), "}}]]")
             : absl::StrCat("[[{{function_node ", function, "}}{{node ", node.name(), "}}]]");
}

Status WithNode(const Status& status, const std::string& function, const Node& node) {
  const std::string where = NodeInError(function, node);
  // Of calls that nest, each node is named once.
  if (absl::StrContains(status.message(), where)) return status;
  return Suffix(status, absl::StrCat("\n\t ", where));
}

}  // namespace smelt
