#include <algorithm>
#include <cstring>
#include <optional>

#include "smelt/compile/plan.h"
#include "smelt/compile/zero_weights.h"
#include "smelt/kernels/pads_input.h"

namespace smelt {
namespace {

bool IsZero(const Tensor* t) {
  if (t == nullptr || t->num_elements() != 1) return false;
  const auto* bytes = static_cast<const char*>(t->raw());
  return std::all_of(bytes, bytes + t->bytes(), [](char b) { return b == 0; });
}

// Two for each dimension, where the action is a padding by zeros that is known.
std::optional<Dims> ZeroPaddings(const Plan& plan, const PlanAction& action) {
  const bool pad = action.node->Is("Pad");
  if (!pad && !(action.node->Is("PadV2") && IsZero(plan.ConstantOf(action.inputs[2])))) {
    return std::nullopt;
  }
  const Tensor* paddings = plan.ConstantOf(action.inputs[1]);
  // Of nothing it makes something.
  const bool empty = plan.values[static_cast<size_t>(action.inputs[0])].shape.num_elements() == 0;
  if (paddings == nullptr || empty) return std::nullopt;
  Dims all;
  for (int64_t i = 0; i < paddings->num_elements(); ++i) {
    all.push_back(paddings->dtype() == Dtype::kInt32 ? paddings->data<int32_t>()[i]
                                                     : paddings->data<int64_t>()[i]);
  }
  return all;
}

}  // namespace

void FoldPads(Plan& plan, Reasons* reasons) {
  std::vector<bool> gone(plan.actions.size(), false);
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    const PlanAction& action = plan.actions[i];
    const auto paddings = ZeroPaddings(plan, action);
    if (!paddings) continue;
    const int padded = action.outputs[0], root = plan.Root(padded);
    const Shape& shape = plan.values[static_cast<size_t>(padded)].shape;
    const auto reads = [&](int v) { return plan.Root(v) == root; };
    bool all = std::none_of(plan.results.begin(), plan.results.end(), reads);
    std::vector<std::pair<size_t, std::shared_ptr<KernelState>>> readers;
    for (size_t r = i + 1; all && r < plan.actions.size(); ++r) {
      const PlanAction& reader = plan.actions[r];
      const auto times = std::count_if(reader.inputs.begin(), reader.inputs.end(), reads);
      if (times == 0) continue;
      const int first = reader.inputs[0];
      const auto* pads = dynamic_cast<const PadsInput*>(reader.state.get());
      std::shared_ptr<KernelState> state;
      if (times == 1 && reads(first) && plan.values[static_cast<size_t>(first)].shape == shape &&
          pads != nullptr && KeepsZeros(plan, reader)) {
        state = pads->Padded(*paddings);
      }
      all = state != nullptr;
      if (!all) {
        NoteReason(reasons, *action.node, "is no reader's padding: ", reader.node->op(), " '",
                   reader.node->name(), "' does not pad what it reads by as much");
      }
      readers.emplace_back(r, std::move(state));
    }
    if (!all || readers.empty()) continue;
    for (auto& [r, state] : readers) {
      plan.actions[r].inputs[0] = action.inputs[0];
      plan.actions[r].state = std::move(state);
    }
    gone[i] = true;
  }
  size_t kept = 0;
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    if (gone[i]) continue;
    if (kept != i) plan.actions[kept] = std::move(plan.actions[i]);
    ++kept;
  }
  plan.actions.resize(kept);
}

}  // namespace smelt
