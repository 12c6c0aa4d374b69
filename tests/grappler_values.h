// Whether a graph computes the same after it was optimized.
#ifndef SMELT_TESTS_GRAPPLER_VALUES_H_
#define SMELT_TESTS_GRAPPLER_VALUES_H_

#include <string>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// Runs both graphs on the same numbers: each of `feeds`, a Placeholder of float that states its
// shape, gets others, none of them alike. Fetched tensors must be of one type and shape, and near
// each other. INTERNAL says what differs.
Status HaveSameValues(const Graph& before, const Graph& after,
                      const std::vector<std::string>& feeds,
                      const std::vector<std::string>& fetches);

}  // namespace smelt

#endif  // SMELT_TESTS_GRAPPLER_VALUES_H_
