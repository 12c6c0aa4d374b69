#include "smelt/compile/readers.h"

namespace smelt {

PlanReaders::PlanReaders(const Plan& plan)
    : plan_(&plan), no_action_(plan.actions.size()), lists_(plan.values.size()) {
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    for (const int v : plan.actions[i].inputs) Of(v).push_back(i);
  }
  for (const int v : plan.results) Of(v).push_back(no_action_);
}

}  // namespace smelt
