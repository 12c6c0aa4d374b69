// One call of a user's graph becomes the body of its function, with the nodes around it that
// TensorFlow makes: an Identity for each argument and result, a NoOp for what it waits for and one
// for who waits for it.
#ifndef SMELT_OPTIMIZE_FUNCTIONS_INLINE_CALL_H_
#define SMELT_OPTIMIZE_FUNCTIONS_INLINE_CALL_H_

#include "smelt/optimize/functions/common.h"
#include "smelt/optimize/inline_policy.h"

namespace smelt {

// The copies of the body's nodes, in ReadyOrder of the body. `attrs` fills placeholders and may be
// nullptr. A call that is a root becomes an IdentityN of its results, or a NoOp where it has none;
// any other goes.
// INVALID_ARGUMENT where call and function do not fit; the graph is of no use then.
// `of_graph`: the call is no part of what another one became.
StatusOr<std::vector<Node*>> InlineCall(Graph& graph, Node* call, CallKind kind, bool of_graph,
                                        const Function& function, const AttrMap* attrs,
                                        NumberedNames& names);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_FUNCTIONS_INLINE_CALL_H_
