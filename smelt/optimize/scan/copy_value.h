// Values of one graph computed in another.
#ifndef SMELT_OPTIMIZE_SCAN_COPY_VALUE_H_
#define SMELT_OPTIMIZE_SCAN_COPY_VALUE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Copies into `to` the nodes that `value` of `from` is computed of, and returns the value there.
// `arg` says what an _Arg is, `name` what a copy wants to be called; copies wait for `after`.
StatusOr<Endpoint> CopyValue(Graph& to, const Graph& from, Endpoint value,
                             absl::FunctionRef<StatusOr<Endpoint>(const Node&)> arg,
                             absl::FunctionRef<std::string(const Node&)> name,
                             const std::vector<Node*>& after);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_SCAN_COPY_VALUE_H_
