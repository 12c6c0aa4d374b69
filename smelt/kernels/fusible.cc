#include "smelt/kernels/fusible.h"

#include <algorithm>

namespace smelt {

bool SlopesAgree(const FusedOps& own, const FusedOps& then) {
  const auto leaks = [](const FusedOps& ops) {
    return std::ranges::any_of(ops.steps, [](const FusedStep& s) {
      return s.kind == FusedStep::Kind::kActivation && s.activation == Activation::kLeakyRelu;
    });
  };
  return !leaks(own) || !leaks(then) || own.leaky_alpha == then.leaky_alpha;
}

JoinedSteps JoinSteps(const FusedOps& own, const FusedOps& then, const BindContext& context,
                      const Shape& output) {
  JoinedSteps joined{own, {context.inputs.begin(), context.inputs.end()}};
  const size_t first = context.inputs.size() - static_cast<size_t>(then.num_args);
  for (FusedStep step : then.steps) {
    if (step.kind == FusedStep::Kind::kActivation) {
      if (step.activation == Activation::kLeakyRelu) joined.ops.leaky_alpha = then.leaky_alpha;
    } else {
      BoundTensor& t = joined.inputs[first + static_cast<size_t>(step.arg)];
      const int64_t n = t.shape.num_elements();
      if (step.kind == FusedStep::Kind::kBias) {
        t.shape = Shape({n});
      } else if (n == output.num_elements()) {
        t.shape = output;
      }
    }
    step.arg += own.num_args;
    joined.ops.steps.push_back(step);
  }
  joined.ops.num_args += then.num_args;
  return joined;
}

}  // namespace smelt
