// What the parts of the function optimizer share.
#ifndef SMELT_OPTIMIZE_FUNCTIONS_COMMON_H_
#define SMELT_OPTIMIZE_FUNCTIONS_COMMON_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Names of new nodes, "PREFIX/_N" with one number for the whole graph, as TensorFlow counts them.
class NumberedNames {
 public:
  std::string Next(absl::string_view prefix) { return absl::StrCat(prefix, "/_", next_++); }

 private:
  int64_t next_ = 0;
};

// A call that was made of a branch or of a part of a loop.
inline constexpr char kBranchCall[] = "_lower_as_multi_device_function";

// Nodes with inputs before readers, of those that are ready the oldest first: the order in which
// TensorFlow visits them. The back edges of version 1 loops do not count; nodes of other cycles
// come last.
std::vector<Node*> ReadyOrder(const Graph& graph);

// `device` where it says something, the rest as `caller` has it: "/device:CPU:3" in a function
// that "/job:a/device:CPU:1" calls is "/job:a/device:CPU:3".
std::string MergeDevices(absl::string_view device, absl::string_view caller);

// The node is placed where that of `e` is.
void ColocateWith(Node* node, Endpoint e);

// For new nodes of one device.
StatusOr<Node*> AddOn(Graph& graph, absl::string_view device, absl::string_view name,
                      absl::string_view op, std::span<const Endpoint> inputs, AttrMap attrs,
                      std::vector<Node*> controls);

// The type that a node which passes `e` on has.
Dtype TypeOf(Endpoint e);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_FUNCTIONS_COMMON_H_
