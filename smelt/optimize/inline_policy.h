// Which calls a user's own graph may lose to inlining, as TensorFlow's function optimizer judges.
#ifndef SMELT_OPTIMIZE_INLINE_POLICY_H_
#define SMELT_OPTIMIZE_INLINE_POLICY_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/optimize/passes.h"

namespace smelt {

// How a node of a user's graph runs a function.
enum class CallKind {
  kDirect,       // the function is its op: done when its results are
  kPartitioned,  // attribute `f` names it: done when its results and control results are
  kBranch,       // as kPartitioned, of a branch or loop that became Switch and Merge
};

// Is the node or function marked to be compiled as a whole?
bool IsForXla(const AttrMap& attrs);
bool BoolAttr(const AttrMap& attrs, absl::string_view name);
// Nobody can tell whether the node ran but by what it gives.
bool MayBeLost(const Node& n);
// Nodes of the body that have an effect and that nothing waits for: with `by_results` no result,
// else no control result.
std::vector<const Node*> UnorderedEffects(const Function& f, bool by_results);
// Judges calls; a function is looked at once. Functions must not change meanwhile. Not thread safe.
class InlinePolicy {
 public:
  // Why the call `node` of `f` must stay a call; empty: it may become the body. What has an effect
  // must be waited for by somebody, compiled functions must stay whole, and a dead value must not
  // leave a body.
  std::string WhyNotInlined(const Node& node, CallKind kind, const Function& f,
                            const PassContext& context);
  // May what the function gives, or who waits for it, be dead, though the call is not?
  bool MayReturnDead(const Function& f);

 private:
  struct Facts {
    bool may_return_dead = false;
    bool has_effects = false;
    const Node* lost_by_results = nullptr;  // an effect that no result waits for
    const Node* lost_by_controls = nullptr;
  };
  const Facts& FactsOf(const Function& f);

  absl::flat_hash_map<const Function*, Facts> facts_;
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_INLINE_POLICY_H_
