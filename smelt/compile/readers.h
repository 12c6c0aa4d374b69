// Who reads each value of a plan: what the steps ask before they make several actions one.
#ifndef SMELT_COMPILE_READERS_H_
#define SMELT_COMPILE_READERS_H_

#include <vector>

#include "smelt/compile/plan.h"

namespace smelt {

// By the bytes that are read: all values of one root have the same readers. It says what the plan
// was when it was made; a step that changes actions changes the lists as well. Thread compatible.
class PlanReaders {
 public:
  explicit PlanReaders(const Plan& plan);

  // Actions in running order, one that reads twice being there twice; behind them no_action(), once
  // for each result that the value is.
  const std::vector<size_t>& Of(int value) const { return lists_[Root(value)]; }
  std::vector<size_t>& Of(int value) { return lists_[Root(value)]; }
  // The action that alone reads the value, once; no_action(): there is none.
  size_t OnlyOf(int value) const {
    const std::vector<size_t>& all = Of(value);
    return all.size() == 1 ? all[0] : no_action();
  }
  size_t no_action() const { return no_action_; }

 private:
  size_t Root(int value) const { return static_cast<size_t>(plan_->Root(value)); }

  const Plan* plan_;
  size_t no_action_;
  std::vector<std::vector<size_t>> lists_;  // by root
};

}  // namespace smelt

#endif  // SMELT_COMPILE_READERS_H_
