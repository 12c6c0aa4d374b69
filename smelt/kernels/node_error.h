// How errors of running nodes name them.
#ifndef SMELT_KERNELS_NODE_ERROR_H_
#define SMELT_KERNELS_NODE_ERROR_H_

#include <string>

#include "smelt/graph/graph.h"

namespace smelt {

// "{{node NAME}}" in brackets, with its function unless that is empty, as TensorFlow's errors end.
std::string NodeInError(const std::string& function, absl::string_view name);
inline std::string NodeInError(const std::string& function, const Node& node) {
  return NodeInError(function, node.name());
}
// `status` with NodeInError behind it, unless it names the node already: a function that calls
// itself fails in one node at every level.
Status WithNode(const Status& status, const std::string& function, absl::string_view name);
inline Status WithNode(const Status& status, const std::string& function, const Node& node) {
  return WithNode(status, function, node.name());
}

}  // namespace smelt

#endif  // SMELT_KERNELS_NODE_ERROR_H_
