#include "smelt/compile/join_lines.h"

#include <algorithm>
#include <atomic>

#include "smelt/compile/readers.h"
#include "smelt/compile/stages.h"
#include "smelt/kernels/nn/line_chain.h"

namespace smelt {
namespace {

std::atomic<bool> joins_all{false};

class LineJoiner {
 public:
  LineJoiner(Plan& plan, Reasons* reasons)
      : plan_(plan), reasons_(reasons), readers_(plan), taken_(plan.actions.size(), false) {}

  void Run() {
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      if (taken_[i] || LinesOf(i) == nullptr) continue;
      const std::vector<size_t> chain = ChainFrom(i);
      if (chain.size() > 1) Join(chain);
    }
    std::erase_if(plan_.actions, [](const PlanAction& a) { return a.node == nullptr; });
  }

 private:
  const LineKernel* LinesOf(size_t action) const {
    const auto& bound = plan_.actions[action].bound;
    return bound == nullptr ? nullptr : bound->lines();
  }

  std::vector<size_t> ChainFrom(size_t first) {
    std::vector<size_t> chain = {first};
    int64_t weights = LinesOf(first)->sizes().weights;
    for (size_t next = NextOf(first); next != readers_.no_action(); next = NextOf(next)) {
      weights += LinesOf(next)->sizes().weights;
      // All of them go by with each step.
      const int64_t room = OwnCacheBytes() / 4;
      if (weights > room && !joins_all) {
        NoteReason(reasons_, *plan_.actions[next].node,
                   "is not joined with the lines before: the weights, ", weights, " bytes, have ",
                   room, " of a core's cache");
        break;
      }
      chain.push_back(next);
    }
    return chain;
  }

  // The action that makes lines of what this one makes.
  size_t NextOf(size_t i) {
    const size_t none = readers_.no_action();
    const PlanAction& action = plan_.actions[i];
    if (action.outputs.size() != 1) return none;
    const int value = action.outputs[0];
    const size_t next = readers_.OnlyOf(value);
    if (next == none || taken_[next] || LinesOf(next) == nullptr) return none;
    const PlanAction& reader = plan_.actions[next];
    const PlanValue& root = plan_.RootOf(value);
    if (root.place != PlanValue::Place::kArena ||
        plan_.Root(reader.inputs[0]) != plan_.Root(value) || reader.outputs.size() != 1 ||
        plan_.Within(reader.inputs[0]) != 0 ||
        !nn::FollowsByLines(LinesOf(i)->sizes(), LinesOf(next)->sizes())) {
      return none;
    }
    // What is read is beside what is written.
    const int64_t bytes = root.bytes(), room = OwnCacheBytes() / 2;
    if (bytes <= room && !joins_all) {
      NoteReason(reasons_, *reader.node, "is not joined with the lines before: ", bytes,
                 " bytes between them stay in a core's cache");
      return none;
    }
    return next;
  }

  void Join(std::span<const size_t> chain) {
    PlanAction joined;
    std::vector<nn::LineLink> links;
    for (const size_t i : chain) {
      PlanAction& action = plan_.actions[i];
      nn::LineLink& link = links.emplace_back();
      for (size_t k = 0; k < action.inputs.size(); ++k) {
        link.inputs.push_back(static_cast<int>(joined.inputs.size()));
        // What the link before makes is nobody's: any input stands in its place.
        if (k == 0 && i != chain[0]) {
          link.inputs.back() = 0;
          continue;
        }
        joined.inputs.push_back(action.inputs[k]);
      }
      link.kernel = std::move(action.bound);
      if (joined.node == nullptr) {
        joined.node = action.node;
      } else {
        joined.then.push_back(action.node);
      }
      joined.then.insert(joined.then.end(), action.then.begin(), action.then.end());
      action.node = nullptr;
      taken_[i] = true;
    }
    joined.kernel = &nn::LineChainKernel();
    joined.outputs = plan_.actions[chain.back()].outputs;
    joined.bound = nn::BindLineChain(std::move(links));
    plan_.actions[chain.back()] = std::move(joined);
  }

  Plan& plan_;
  Reasons* const reasons_;
  const PlanReaders readers_;
  std::vector<bool> taken_;  // by action: a chain has it
};

}  // namespace

void JoinLines(Plan& plan, Reasons* reasons) { LineJoiner(plan, reasons).Run(); }
void JoinAllLines(bool all) { joins_all = all; }

}  // namespace smelt
