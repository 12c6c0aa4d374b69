// If, Case and While become Switch, Merge and loops of version 1, as TensorFlow lowers them; their
// branches and bodies become calls, for the caller to inline.
#ifndef SMELT_OPTIMIZE_FUNCTIONS_LOWER_CONTROL_FLOW_H_
#define SMELT_OPTIMIZE_FUNCTIONS_LOWER_CONTROL_FLOW_H_

#include "smelt/optimize/functions/common.h"

namespace smelt {

extern const OpSet kFunctionalControlFlow;

// The functions that an If, Case or While runs: (then, else), the branches, (cond, body). The
// attributes may be anything: fewer, or no, functions where they do not name them.
std::vector<const FuncAttr*> BranchesOf(const Node& node);

// Takes the node apart; with `asked` it stays as IdentityN of the results, else as a NoOp.
// Returns the calls. An empty list: the functions' types do not fit the node's, or nothing goes
// around the loop; nothing was changed.
// REQUIRES: the library has all of BranchesOf(node), and these are as many as the op wants.
StatusOr<std::vector<Node*>> LowerControlFlow(Graph& graph, Node* node, bool asked,
                                              NumberedNames& names);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_FUNCTIONS_LOWER_CONTROL_FLOW_H_
