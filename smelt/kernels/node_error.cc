#include "smelt/kernels/node_error.h"

#include "absl/strings/match.h"

namespace smelt {

std::string NodeInError(const std::string& function, absl::string_view name) {
  return function.empty() ? absl::StrCat("[[{{node ", name, "}}]]")
                          : absl::StrCat("[[{{function_node ", function, "}}{{node ", name, "}}]]");
}

Status WithNode(const Status& status, const std::string& function, absl::string_view name) {
  const std::string where = NodeInError(function, name);
  // Of calls that nest, each node is named once.
  if (absl::StrContains(status.message(), where)) return status;
  return Suffix(status, absl::StrCat("\n\t ", where));
}

}  // namespace smelt
