// What fusions of a user's own have made, before it is written.
#ifndef SMELT_LITE_CHECK_OWN_FUSIONS_H_
#define SMELT_LITE_CHECK_OWN_FUSIONS_H_

#include <vector>

#include "smelt/lite/fuse/fusion.h"

namespace smelt {

// Fuse of fuse/fusion.h; the operators that own fusions added (kOwnFusion) are to be ones that a
// reader runs. INVALID_ARGUMENT names the fusion, the operator and what is wrong with its operands,
// options or results. Custom operators are the program's own; of builtins that are not known here
// nothing is said.
Status FuseChecked(Graph& graph, const FusionChoice& choice, std::vector<FusionNote>* notes);

}  // namespace smelt

#endif  // SMELT_LITE_CHECK_OWN_FUSIONS_H_
