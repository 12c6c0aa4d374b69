// The heaviest convex set of nodes: no path leaves it through another node and comes back, so that
// it can run as one function.
#ifndef SMELT_ANALYSIS_CONVEX_H_
#define SMELT_ANALYSIS_CONVEX_H_

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Of the nodes for which `may` holds. Exact for graphs that need no choice (what cannot be placed
// lies before, behind or beside it); else a good one: the heaviest layer between two barriers of
// other nodes, grown as far as it stays convex. Parts that are not connected to the rest and weigh
// little are left out. Linear in the graph. Constants belong to nobody: never members, no barrier.
absl::flat_hash_set<const Node*> HeaviestConvexSet(const Graph& graph,
                                                   absl::FunctionRef<bool(const Node*)> may,
                                                   absl::FunctionRef<int64_t(const Node*)> weight);

}  // namespace smelt

#endif  // SMELT_ANALYSIS_CONVEX_H_
