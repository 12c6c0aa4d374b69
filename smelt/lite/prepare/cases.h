// Choices between many functions as choices between two.
#ifndef SMELT_LITE_PREPARE_CASES_H_
#define SMELT_LITE_PREPARE_CASES_H_

#include "smelt/graph/graph.h"

namespace smelt {

// Each Case of the graph becomes an If of its first function and a function that has a Case of the
// others: of two functions an If of both. An index that no function has chooses the last, as in
// TensorFlow. The new functions join the graph's library.
Status CasesToIfs(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_CASES_H_
