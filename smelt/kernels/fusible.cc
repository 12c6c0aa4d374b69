#include "smelt/kernels/fusible.h"

#include <optional>

namespace smelt {

bool SlopesAgree(const FusedOps& own, const FusedOps& then) {
  std::optional<float> slope;
  for (const FusedOps* ops : {&own, &then}) {
    for (const FusedStep& s : ops->steps) {
      const bool leaks = s.activation == Activation::kLeakyRelu;
      if (s.kind != FusedStep::Kind::kActivation || (!leaks && s.activation != Activation::kRelu)) {
        continue;
      }
      const float own_slope = leaks ? ops->leaky_alpha : 0;
      if (slope && *slope != own_slope) return false;
      slope = own_slope;
    }
  }
  return true;
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
