#include <algorithm>

#include "smelt/compile/plan.h"

namespace smelt {
namespace {

constexpr int64_t Aligned(int64_t bytes) {
  constexpr auto kUnit = static_cast<int64_t>(kAlignment);
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

std::vector<Lifetime> Lifetimes(const Plan& plan) {
  std::vector<Lifetime> lives(plan.values.size());
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    const auto now = static_cast<int>(i);
    for (const int v : plan.actions[i].outputs) {
      Lifetime& life = lives[static_cast<size_t>(plan.Root(v))];
      if (life.first < 0) life.first = now;
      life.last = std::max(life.last, now);
    }
    for (const int v : plan.actions[i].inputs) {
      lives[static_cast<size_t>(plan.Root(v))].last = now;
    }
  }
  return lives;
}

namespace {

// The first output of an action takes the bytes of an input that nobody reads later.
void WriteInPlace(Plan& plan) {
  const std::vector<Lifetime> lives = Lifetimes(plan);
  std::vector<int> last(plan.values.size(), -1);  // of what took bytes over, by root
  for (size_t v = 0; v < lives.size(); ++v) last[v] = lives[v].last;
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    const PlanAction& action = plan.actions[i];
    if (action.bound == nullptr || action.outputs.empty()) continue;
    const int out = action.outputs[0];
    PlanValue& to = plan.values[static_cast<size_t>(out)];
    for (size_t k = 0; k < action.inputs.size() && to.same_as < 0; ++k) {
      const int root = plan.Root(action.inputs[k]);
      PlanValue& from = plan.values[static_cast<size_t>(root)];
      const bool twice =
          std::ranges::count_if(action.inputs, [&](int v) { return plan.Root(v) == root; }) > 1;
      const int64_t bytes = plan.values[static_cast<size_t>(action.inputs[k])].bytes();
      if (from.place != PlanValue::Place::kArena || from.bytes() != to.bytes() || twice ||
          bytes != to.bytes() || last[static_cast<size_t>(root)] != static_cast<int>(i) ||
          !action.bound->may_overwrite(static_cast<int>(k))) {
        continue;
      }
      last[static_cast<size_t>(root)] = last[static_cast<size_t>(out)];
      // The bytes of a result are a result's from the first value in them on.
      from.place = to.place;
      from.number = to.number;
      to.same_as = root;
    }
  }
}

}  // namespace

void PlanMemory(Plan& plan) {
  WriteInPlace(plan);
  const std::vector<Lifetime> lives = Lifetimes(plan);
  std::vector<int> order;
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const PlanValue& value = plan.values[v];
    if (value.same_as >= 0 || value.place != PlanValue::Place::kArena || lives[v].first < 0) {
      continue;
    }
    order.push_back(static_cast<int>(v));
  }
  // The largest first, each at the lowest place that is free for as long as it lives.
  std::ranges::stable_sort(order, std::greater(),
                           [&](int v) { return plan.values[static_cast<size_t>(v)].bytes(); });
  std::vector<int> placed;  // ascending by offset
  for (const int v : order) {
    PlanValue& value = plan.values[static_cast<size_t>(v)];
    const Lifetime& life = lives[static_cast<size_t>(v)];
    const int64_t bytes = Aligned(value.bytes());
    int64_t at = 0;
    for (const int other : placed) {
      const PlanValue& o = plan.values[static_cast<size_t>(other)];
      const Lifetime& l = lives[static_cast<size_t>(other)];
      if (l.first > life.last || l.last < life.first) continue;
      if (o.offset >= at + bytes) break;
      at = std::max(at, o.offset + Aligned(o.bytes()));
    }
    value.offset = at;
    plan.scratch_offset = std::max(plan.scratch_offset, at + bytes);
    placed.insert(
        std::ranges::upper_bound(placed, at, {},
                                 [&](int p) { return plan.values[static_cast<size_t>(p)].offset; }),
        v);
  }
  int64_t scratch = 0;
  for (const PlanAction& action : plan.actions) {
    if (action.bound == nullptr) continue;
    scratch = std::max(scratch, static_cast<int64_t>(action.bound->scratch_bytes()));
  }
  plan.arena_bytes = plan.scratch_offset + Aligned(scratch);
}

int64_t LeastArena(const Plan& plan) {
  const std::vector<Lifetime> lives = Lifetimes(plan);
  std::vector<int64_t> change(plan.actions.size() + 1, 0);
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const PlanValue& value = plan.values[v];
    if (value.same_as >= 0 || value.place != PlanValue::Place::kArena || lives[v].first < 0) {
      continue;
    }
    change[static_cast<size_t>(lives[v].first)] += Aligned(value.bytes());
    change[static_cast<size_t>(lives[v].last) + 1] -= Aligned(value.bytes());
  }
  int64_t now = 0, most = 0;
  for (const int64_t c : change) most = std::max(most, now += c);
  return most;
}

}  // namespace smelt
