// What is known of a graph before anything runs, as constants.
#ifndef SMELT_LITE_PREPARE_KNOWN_H_
#define SMELT_LITE_PREPARE_KNOWN_H_

#include "smelt/graph/graph.h"

namespace smelt {

// Placeholders that nobody feeds are their defaults.
// REQUIRES: a callable graph (optimize/passes.h), whose fed tensors are _Arg nodes.
void TakeDefaults(Graph& graph);

// Integers that shapes tell, where others of their sizes are free, become constants, and branches
// whose choice is a constant calls. Has anything changed? Passes then find more to do.
//
// REQUIRES: arguments that state their shapes (kOutputShapes).
StatusOr<bool> FoldKnown(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_KNOWN_H_
