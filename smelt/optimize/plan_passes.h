// Which passes run over a user's graph: those of pipeline.h that the configuration asks for, its
// custom optimizers, and the optimizers of shared libraries.
#ifndef SMELT_OPTIMIZE_PLAN_PASSES_H_
#define SMELT_OPTIMIZE_PLAN_PASSES_H_

#include <memory>
#include <string>
#include <vector>

#include "smelt/optimize/pipeline.h"

namespace smelt {

struct PassPlan {
  std::vector<Pass> passes;                              // iteration after iteration
  std::vector<std::shared_ptr<CustomOptimizer>> custom;  // that passes refer to
  std::vector<std::string> unknown;                      // names that nothing has
};

// For one graph: which devices its nodes name decides about optimizers of shared libraries. An
// error of a custom optimizer that refuses its parameters is the result. Thread safe.
StatusOr<PassPlan> PlanPasses(const RewriterConfig& config, const Graph& graph);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_PLAN_PASSES_H_
