// One call becomes the body of its function. In a user's graph with the nodes around it that
// TensorFlow makes: an Identity for each argument and result, a NoOp for what it waits for and one
// for who waits for it. For a session with the NoOps alone, where anything waits.
#ifndef SMELT_OPTIMIZE_FUNCTIONS_INLINE_CALL_H_
#define SMELT_OPTIMIZE_FUNCTIONS_INLINE_CALL_H_

#include "smelt/optimize/functions/common.h"
#include "smelt/optimize/inline_policy.h"

namespace smelt {

struct InlineOptions {
  CallKind kind = CallKind::kPartitioned;
  // The call is no part of what another one became.
  bool of_graph = true;
  // Somebody may ask for its results, by its name.
  bool asked = false;
  // A session runs the result: nothing but the order of effects is kept, and these run whoever
  // waits for them.
  bool for_execution = false;
  // Some nodes of the graph may not run, or run many times. Asked for sessions.
  bool control_flow = false;
};

// The copies of the body's nodes, in ReadyOrder of the body, or for a session in the body's.
// `attrs` fills placeholders and may be nullptr. In a user's graph a call that is a root becomes a
// NoOp, or an IdentityN of its results where it is asked for these; any other goes.
// INVALID_ARGUMENT where call and function do not fit; the graph is of no use then.
StatusOr<std::vector<Node*>> InlineCall(Graph& graph, Node* call, const Function& function,
                                        const AttrMap* attrs, const InlineOptions& options,
                                        NumberedNames& names);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_FUNCTIONS_INLINE_CALL_H_
