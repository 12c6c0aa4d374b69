#include "smelt/compile/head.h"

#include <algorithm>

namespace smelt {
namespace {

// Fewer bytes of weights come from the next cache while a part begins.
constexpr int64_t kLeastWeights = int64_t{256} << 10;

int64_t WeightsOf(const Plan& plan, const PlanAction& action) {
  int64_t bytes = 0;
  for (const int v : action.inputs) {
    if (const Tensor* t = plan.ConstantOf(v)) bytes += static_cast<int64_t>(t->bytes());
  }
  return bytes;
}

// The value that an action makes, whose bytes are nobody else's; -1: there is none.
int MadeValue(const Plan& plan, Endpoint of) {
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const PlanValue& value = plan.values[v];
    if (value.of != of) continue;
    return value.same_as < 0 && value.place == PlanValue::Place::kArena ? static_cast<int>(v) : -1;
  }
  return -1;
}

}  // namespace

std::optional<PlanHead> FindHead(const Plan& plan, int64_t rows, int64_t bytes) {
  constexpr int kNobody = -1;
  std::vector<int> maker(plan.values.size(), kNobody);
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    for (const int v : plan.actions[i].outputs) maker[static_cast<size_t>(v)] = static_cast<int>(i);
  }
  // Of the actions looked at so far, from the last one on: what they read that others make.
  std::set<int> read;
  const auto add = [&](int value) {
    const int root = plan.Root(value);
    if (maker[static_cast<size_t>(root)] != kNobody) read.insert(root);
  };
  for (const int v : plan.results) add(v);
  int64_t weights = 0, values = 0;
  size_t best = plan.actions.size();
  PlanHead head;
  for (size_t i = plan.actions.size(); i-- > 1;) {
    const PlanAction& action = plan.actions[i];
    int64_t around = 0;  // bytes of values that it reads and makes
    for (const int v : action.outputs) {
      read.erase(v);
      values += plan.values[static_cast<size_t>(v)].bytes();
      around += plan.values[static_cast<size_t>(v)].bytes();
    }
    for (const int v : action.inputs) {
      add(v);
      if (plan.ConstantOf(v) == nullptr) around += plan.values[static_cast<size_t>(v)].bytes();
    }
    if (around > bytes) break;
    const int64_t own = WeightsOf(plan, action);
    weights += own;
    if (2 * own < kLeastWeights || weights < kLeastWeights || read.size() != 1) continue;
    const PlanValue& cut = plan.values[static_cast<size_t>(*read.begin())];
    if (cut.place != PlanValue::Place::kArena || cut.shape.rank() == 0 || cut.shape[0] != rows ||
        values + cut.bytes() > weights) {
      continue;
    }
    best = i;
    head.cut = cut.of;
    head.weights = weights;
  }
  if (best == plan.actions.size()) return std::nullopt;
  for (size_t i = best; i < plan.actions.size(); ++i) head.nodes.insert(plan.actions[i].node);
  return head;
}

bool DropHead(const PlanHead& head, Plan& plan) {
  const int cut = MadeValue(plan, head.cut);
  if (cut < 0) return false;
  std::erase_if(plan.actions, [&](const PlanAction& a) { return head.nodes.contains(a.node); });
  for (PlanValue& v : plan.values) {
    if (v.place == PlanValue::Place::kResult) v.place = PlanValue::Place::kArena;
  }
  plan.values[static_cast<size_t>(cut)].place = PlanValue::Place::kResult;
  plan.values[static_cast<size_t>(cut)].number = 0;
  plan.results = {cut};
  return true;
}

bool KeepHead(const PlanHead& head, int number, Plan& plan) {
  const int cut = MadeValue(plan, head.cut);
  if (cut < 0) return false;
  std::erase_if(plan.actions, [&](const PlanAction& a) { return !head.nodes.contains(a.node); });
  plan.values[static_cast<size_t>(cut)].place = PlanValue::Place::kArgument;
  plan.values[static_cast<size_t>(cut)].number = number;
  return true;
}

}  // namespace smelt
