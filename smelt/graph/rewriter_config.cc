#include "smelt/graph/rewriter_config.h"

namespace smelt {

void SetAggressive(RewriterConfig& config) {
  for (Toggle* toggle :
       {&config.implementation_selector, &config.function_optimization,
        &config.common_subgraph_elimination, &config.constant_folding, &config.shape_optimization,
        &config.arithmetic_optimization, &config.layout_optimizer, &config.remapping,
        &config.loop_optimization, &config.dependency_optimization}) {
    if (*toggle == Toggle::kDefault) *toggle = Toggle::kAggressive;
  }
}

}  // namespace smelt
