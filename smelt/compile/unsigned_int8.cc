#include "smelt/compile/unsigned_int8.h"

#include <algorithm>

#include "smelt/kernels/unsigned_int8.h"

namespace smelt {
namespace {

BoundTensor BoundInt8(const Plan& plan, int value) {
  const PlanValue& v = plan.values[static_cast<size_t>(value)];
  return {v.dtype, v.shape, plan.ConstantOf(value)};
}

bool MayBeUnsigned(const Plan& plan, const PlanAction& action) {
  const auto* state = dynamic_cast<const UnsignedInt8*>(action.state.get());
  if (state == nullptr) return false;
  std::vector<BoundTensor> inputs, outputs;
  for (const int v : action.inputs) inputs.push_back(BoundInt8(plan, v));
  for (const int v : action.outputs) outputs.push_back(BoundInt8(plan, v));
  return state->MayBeUnsigned({*action.node, inputs, outputs});
}

}  // namespace

bool StoreUnsigned(Plan& plan) {
  std::vector<bool> may(plan.values.size(), false);
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const PlanValue& value = plan.values[v];
    may[v] =
        value.dtype == Dtype::kInt8 && value.same_as < 0 && value.place == PlanValue::Place::kArena;
  }
  const auto refuse = [&](const PlanAction& action) {
    for (const int v : action.inputs) may[static_cast<size_t>(plan.Root(v))] = false;
    for (const int v : action.outputs) may[static_cast<size_t>(plan.Root(v))] = false;
  };
  std::vector<const PlanAction*> passing;
  for (const PlanAction& action : plan.actions) {
    if (!MayBeUnsigned(plan, action)) {
      refuse(action);
    } else if (dynamic_cast<const UnsignedInt8*>(action.state.get())->passes_on()) {
      passing.push_back(&action);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const PlanAction* action : passing) {
      const bool in = may[static_cast<size_t>(plan.Root(action->inputs[0]))];
      const bool out = may[static_cast<size_t>(plan.Root(action->outputs[0]))];
      if (in == out) continue;
      refuse(*action);
      changed = true;
    }
  }
  bool any = false;
  for (size_t v = 0; v < plan.values.size(); ++v) {
    if (!may[static_cast<size_t>(plan.Root(static_cast<int>(v)))]) continue;
    plan.values[v].dtype = Dtype::kUint8;
    any = true;
  }
  return any;
}

bool NeedsSigned(const Plan& plan) {
  const auto is_unsigned = [&](int v) {
    const PlanValue& value = plan.values[static_cast<size_t>(v)];
    return value.dtype != value.of.node->output_types[static_cast<size_t>(value.of.port)];
  };
  return std::ranges::any_of(plan.actions, [&](const PlanAction& action) {
    return action.bound == nullptr && (std::ranges::any_of(action.inputs, is_unsigned) ||
                                       std::ranges::any_of(action.outputs, is_unsigned));
  });
}

Plan CopyOfUnbound(const Plan& plan) {
  Plan copy;
  copy.values = plan.values;
  copy.constants = plan.constants;
  copy.results = plan.results;
  for (const PlanAction& a : plan.actions) {
    copy.actions.push_back({a.node, a.kernel, a.inputs, a.outputs, a.state, nullptr, a.then});
  }
  return copy;
}

}  // namespace smelt
