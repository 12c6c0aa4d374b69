#include <algorithm>
#include <cmath>

#include "smelt/compile/plan.h"
#include "smelt/kernels/scales_weights.h"

namespace smelt {
namespace {

class ScaleFolder {
 public:
  ScaleFolder(Plan& plan, Reasons* reasons) : plan_(plan), reasons_(reasons) {}

  Status Run() {
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      RETURN_IF_ERROR(Fold(i));
    }
    std::erase_if(plan_.actions, [](const PlanAction& a) { return a.node == nullptr; });
    return OkStatus();
  }

 private:
  const PlanValue& At(int value) const { return plan_.values[static_cast<size_t>(value)]; }

  // The only action that reads the value; nullptr: there is none, or several.
  PlanAction* OnlyReader(int value, size_t after) {
    const auto reads = [&](int v) { return plan_.Root(v) == plan_.Root(value); };
    if (std::ranges::any_of(plan_.results, reads)) return nullptr;
    PlanAction* reader = nullptr;
    for (size_t r = after; r < plan_.actions.size(); ++r) {
      PlanAction& action = plan_.actions[r];
      const auto times = std::ranges::count_if(action.inputs, reads);
      if (times == 0) continue;
      if (reader != nullptr || times > 1) return nullptr;
      reader = &action;
    }
    return reader;
  }

  Status Fold(size_t i) {
    PlanAction& action = plan_.actions[i];
    if (action.node == nullptr || action.inputs.size() < 2 || action.outputs.size() != 1) {
      return OkStatus();
    }
    const auto* scales = dynamic_cast<const ScalesWeights*>(action.state.get());
    const Tensor* weights = scales == nullptr ? nullptr : plan_.ConstantOf(action.inputs[1]);
    if (weights == nullptr || weights->dtype() != Dtype::kFloat) return OkStatus();
    const int64_t channels = scales->ScaledChannels(*weights);
    const int out = action.outputs[0];
    if (channels == 0 || At(out).dtype != Dtype::kFloat) return OkStatus();
    PlanAction* product = OnlyReader(out, i + 1);
    if (product == nullptr || product->node == nullptr || !product->node->Is("Mul")) {
      return OkStatus();
    }
    const bool first = plan_.Root(product->inputs[0]) == plan_.Root(out);
    const int scaled = product->inputs[first ? 0 : 1], by = product->inputs[first ? 1 : 0];
    const Tensor* factors = plan_.ConstantOf(by);
    const Shape& shape = At(product->outputs[0]).shape;
    if (factors == nullptr) return OkStatus();
    const auto refuse = [&](absl::string_view why) {
      NoteReason(reasons_, *product->node, "is not in the weights of '", action.node->name(),
                 "': ", why);
      return OkStatus();
    };
    if (factors->num_elements() != channels || factors->rank() == 0 ||
        factors->shape().back() != channels || At(scaled).shape != shape ||
        shape.num_elements() != At(out).shape.num_elements() || shape.back() != channels) {
      return refuse("it is not by one number for each channel");
    }
    // A sum of infinities is another number than an infinite product of the sum.
    const auto finite = [](float f) { return std::isfinite(f); };
    if (!std::ranges::all_of(factors->flat<float>(), finite)) {
      return refuse("a factor is not finite");
    }
    const bool reshaped = shape != At(out).shape;
    ASSIGN_OR_RETURN(Tensor all, scales->Scaled(*weights, *factors));
    action.inputs[1] = plan_.AddConstant(action.inputs[1], std::move(all));
    action.then.push_back(product->node);
    if (!reshaped) {
      action.outputs = product->outputs;
    } else {  // the same bytes in the reshape's shape
      PlanValue& made = plan_.values[static_cast<size_t>(product->outputs[0])];
      PlanValue& own = plan_.values[static_cast<size_t>(out)];
      own.place = made.place;
      own.number = made.number;
      made.same_as = out;
    }
    product->node = nullptr;
    return OkStatus();
  }

  Plan& plan_;
  Reasons* const reasons_;
};

}  // namespace

Status FoldScales(Plan& plan, Reasons* reasons) { return ScaleFolder(plan, reasons).Run(); }

}  // namespace smelt
