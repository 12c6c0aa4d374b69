#include "smelt/graph/fused_ops.h"

#include <string>

#include "absl/strings/str_join.h"

namespace smelt {
namespace {

struct FusedName {
  absl::string_view name;
  Activation activation;
};
constexpr FusedName kFusedNames[] = {
    {"Relu", Activation::kRelu},
    {"Relu6", Activation::kRelu6},
    {"Elu", Activation::kElu},
    {"LeakyRelu", Activation::kLeakyRelu},
    {"Tanh", Activation::kTanh},
    {"Sigmoid", Activation::kSigmoid},
    {"GeluExact", Activation::kGeluExact},
    {"GeluApproximate", Activation::kGeluApproximate},
    {"Silu", Activation::kSilu},
    {"HardSwish", Activation::kHardSwish},
    // As the remapper names them for oneDNN.
    {"_MklSwish", Activation::kSilu},
    {"_FusedHardSwish", Activation::kHardSwish},
};

}  // namespace

StatusOr<FusedOps> ParseFusedOps(const Node& node, absl::string_view what) {
  FusedOps f;
  f.epsilon = node.Float("epsilon", 1e-4f);
  f.leaky_alpha = node.Float("leakyrelu_alpha", 0.2f);
  const auto names = node.Get<std::vector<std::string>>("fused_ops", {});
  if (names.empty()) return InvalidArgument("Fused ", what, " must have at least one fused op.");
  for (const std::string& name : names) {
    FusedStep step;
    step.arg = f.num_args;
    if (name == "BiasAdd") {
      step.kind = FusedStep::Kind::kBias;
      f.num_args += 1;
    } else if (name == "FusedBatchNorm") {
      step.kind = FusedStep::Kind::kBatchNorm;
      f.num_args += 4;
    } else if (name == "Add") {
      step.kind = FusedStep::Kind::kAdd;
      f.num_args += 1;
    } else {
      bool known = false;
      for (const FusedName& n : kFusedNames) {
        if (n.name != name) continue;
        step.kind = FusedStep::Kind::kActivation;
        step.activation = n.activation;
        known = true;
      }
      if (!known) {
        return Unimplemented("Fusion is not implemented: [", absl::StrJoin(names, ","), "]");
      }
    }
    f.steps.push_back(step);
  }
  const int64_t num_args = node.Int("num_args", 0);
  if (num_args != f.num_args) {
    return InvalidArgument("Fused ", what, " [", absl::StrJoin(names, ","), "] must have ",
                           f.num_args, " extra arguments, not ", num_args);
  }
  return f;
}

}  // namespace smelt
