// What fusions of a user's own have made, before it is written.
#ifndef SMELT_LITE_CHECK_OWN_FUSIONS_H_
#define SMELT_LITE_CHECK_OWN_FUSIONS_H_

#include "smelt/base/status.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Are the operators that own fusions added (kOwnFusion of fuse/fusion.h) ones that a reader runs?
// INVALID_ARGUMENT names the fusion, the operator and what is wrong with its operands, options or
// results. Custom operators are the program's own; of builtins that are not known here nothing is
// said. The marks go.
Status CheckOwnFusions(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_CHECK_OWN_FUSIONS_H_
