#include <algorithm>
#include <limits>
#include <set>

#include "smelt/compile/stages.h"
#include "smelt/graph/op_facts.h"

namespace smelt {
namespace {

// What is tried grows by the square of the cuts.
constexpr size_t kMostCuts = 96;

// Done in the pass of what makes their first input, where nobody else reads that.
constexpr OpSet kFollows = {"BiasAdd", "BatchToSpaceND", "FusedBatchNormV3", "_Int8Quantize"};
// Done by what reads them.
constexpr OpSet kPrepares = {"Pad", "PadV2", "SpaceToBatchND"};
constexpr OpSet kResiduals = {"Add", "AddN", "AddV2"};

constexpr size_t kNever = std::numeric_limits<size_t>::max();

// By root: which actions make it, read it first and last, and how many do.
struct Uses {
  size_t maker = kNever, last = 0;
  int readers = 0;
};

std::vector<Uses> UsesOf(const Plan& plan) {
  std::vector<Uses> uses(plan.values.size());
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    for (const int v : plan.actions[i].outputs) uses[static_cast<size_t>(v)].maker = i;
    for (const int v : plan.actions[i].inputs) {
      Uses& u = uses[static_cast<size_t>(plan.Root(v))];
      u.last = i;
      ++u.readers;
    }
  }
  for (const int v : plan.results) uses[static_cast<size_t>(plan.Root(v))].last = kNever;
  return uses;
}

// Do the actions from `next` on begin something new with the value?
bool BeginsThere(const Plan& plan, const Uses& uses, const Node& next) {
  const PlanAction& maker = plan.actions[uses.maker];
  if (maker.node->Is(kPrepares)) return false;
  const bool alone = uses.readers == 1;
  if (next.Is(kFollows)) return !alone;
  if (!next.Is(kElementwiseOps)) return true;
  // Normalizations and activations have values that several of their steps read. A sum of what was
  // computed is a residual, which no step spans.
  return !alone && maker.node->Is(kResiduals) && std::ranges::none_of(maker.inputs, [&](int v) {
    return plan.ConstantOf(plan.Root(v)) != nullptr;
  });
}

}  // namespace

std::vector<PlanCut> FindCuts(const Plan& plan) {
  const std::vector<Uses> uses = UsesOf(plan);
  std::vector<PlanCut> cuts;
  std::set<int> live;
  for (size_t i = 0; i + 1 < plan.actions.size(); ++i) {
    const PlanAction& action = plan.actions[i];
    for (const int v : action.outputs) {
      const Uses& u = uses[static_cast<size_t>(v)];
      if (u.readers > 0 || u.last == kNever) live.insert(v);
    }
    for (const int v : action.inputs) {
      const int root = plan.Root(v);
      if (uses[static_cast<size_t>(root)].last == i) live.erase(root);
    }
    if (live.size() != 1) continue;
    const int v = *live.begin();
    const PlanValue& value = plan.values[static_cast<size_t>(v)];
    if (value.place == PlanValue::Place::kArena && value.same_as < 0 &&
        BeginsThere(plan, uses[static_cast<size_t>(v)], *plan.actions[i + 1].node)) {
      cuts.push_back({i + 1, v});
    }
  }
  if (cuts.size() > kMostCuts) {
    const auto bytes = [&](const PlanCut& c) {
      return plan.values[static_cast<size_t>(c.value)].bytes();
    };
    std::ranges::nth_element(cuts, cuts.begin() + kMostCuts, {}, bytes);
    cuts.resize(kMostCuts);
    std::ranges::sort(cuts, {}, &PlanCut::action);
  }
  return cuts;
}

StatusOr<Plan> PlanOfStage(const Plan& plan, std::span<const PlanStage> stages, size_t index,
                           int argument) {
  const PlanStage& stage = stages[index];
  const Endpoint from = index > 0 ? stages[index - 1].makes : Endpoint();
  Plan out;
  std::vector<int> new_value(plan.values.size(), -1);
  std::vector<bool> made(plan.values.size(), false);
  const auto add = [&](int value, const auto& self) -> int {
    const auto at = static_cast<size_t>(value);
    if (new_value[at] >= 0) return new_value[at];
    PlanValue v = plan.values[at];
    if (v.same_as >= 0) v.same_as = self(v.same_as, self);
    if (v.place == PlanValue::Place::kConstant) {
      out.constants.push_back(plan.constants[static_cast<size_t>(v.number)]);
      v.number = static_cast<int>(out.constants.size()) - 1;
    } else if (from.node != nullptr && v.of == from) {
      v.place = PlanValue::Place::kArgument;
      v.number = argument;
    } else if (stage.makes.node != nullptr && v.of == stage.makes) {
      v.place = PlanValue::Place::kResult;
      v.number = 0;
    }
    out.values.push_back(std::move(v));
    return new_value[at] = static_cast<int>(out.values.size()) - 1;
  };
  const auto missing = [&](int value) {
    const PlanValue& v = plan.RootOf(value);
    const bool computed =
        v.place == PlanValue::Place::kArena || v.place == PlanValue::Place::kResult;
    return computed && !made[static_cast<size_t>(plan.Root(value))] &&
           (from.node == nullptr || v.of != from);
  };
  const auto no_maker = [&](int value) {
    return Internal("no action of stage ", index, " makes '", EndpointName(plan.RootOf(value).of),
                    "', and no other leaves it");
  };
  // Arguments that are not read say of what shape they were, too.
  for (size_t v = 0; v < plan.values.size(); ++v) {
    if (plan.values[v].place == PlanValue::Place::kArgument) add(static_cast<int>(v), add);
  }
  for (const PlanAction& action : plan.actions) {
    if (!stage.nodes.contains(action.node)) continue;
    PlanAction& kept = out.actions.emplace_back();
    kept.node = action.node;
    kept.kernel = action.kernel;
    kept.state = action.state;
    for (const int v : action.inputs) {
      if (missing(v)) return no_maker(v);
      kept.inputs.push_back(add(v, add));
    }
    for (const int v : action.outputs) {
      made[static_cast<size_t>(v)] = true;
      kept.outputs.push_back(add(v, add));
    }
  }
  for (size_t v = 0; v < plan.values.size() && stage.makes.node != nullptr; ++v) {
    if (plan.values[v].of == stage.makes && made[v]) out.results = {new_value[v]};
  }
  if (stage.makes.node != nullptr) {
    if (out.results.empty()) {
      return Internal("no action of stage ", index, " makes '", EndpointName(stage.makes), "'");
    }
    return out;
  }
  for (const int v : plan.results) {
    if (missing(v)) return no_maker(v);
    out.results.push_back(add(v, add));
  }
  return out;
}

}  // namespace smelt
