// Which calls a user's own graph may lose to inlining, as TensorFlow's function optimizer judges.
#ifndef SMELT_OPTIMIZE_INLINE_POLICY_H_
#define SMELT_OPTIMIZE_INLINE_POLICY_H_

#include <string>

#include "smelt/optimize/passes.h"

namespace smelt {

// Why the call `node` of `f` must stay a call; empty: it may become the body. In a graph that is
// about to be run every call may, since roots hold the effects of bodies; in a user's graph what
// has an effect must be waited for by somebody, compiled functions must stay whole, and a dead
// value must not leave a body.
std::string WhyNotInlined(const Graph& graph, const Node& node, const Function& f,
                          const PassContext& context);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_INLINE_POLICY_H_
