// Constants for readers that know no infinity.
#ifndef SMELT_LITE_FINITE_CONSTANTS_H_
#define SMELT_LITE_FINITE_CONSTANTS_H_

#include "smelt/base/status.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Infinities in the graph's float constants become the largest numbers of their sign.
Status MakeFinite(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_FINITE_CONSTANTS_H_
