// TensorLists: what is written into one comes out of it elsewhere, as if an edge led there.
#ifndef SMELT_OPTIMIZE_PRECISION_LISTS_OF_TENSORS_H_
#define SMELT_OPTIMIZE_PRECISION_LISTS_OF_TENSORS_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/optimize/precision/type_graph.h"

namespace smelt {

// Puts a value into a list that it gives back, or takes one out of the list that it is given.
bool WritesList(const Node& n);
bool ReadsList(const Node& n);
// The place of the float elements of a list op; -1 for every other node.
int FloatElements(const TypeGraph& types, const Node& n);

// List ops of float that share lists: their elements must have one type.
struct ListCluster {
  std::vector<int> places;  // of the elements
  bool must_stay = false;   // one of them, or what the lists pass through, cannot be changed
};
// `may_change`: the node may be rewritten; `leaves`: others see the lists that it is given or
// gives.
std::vector<ListCluster> FindListClusters(const TypeGraph& types,
                                          absl::FunctionRef<bool(const Node&)> may_change,
                                          absl::FunctionRef<bool(const Node&)> leaves);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_PRECISION_LISTS_OF_TENSORS_H_
