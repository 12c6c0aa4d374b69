#include <algorithm>
#include <cstring>

#include "smelt/base/parallel.h"
#include "smelt/compile/plan.h"
#include "smelt/kernels/bound_kernel.h"

namespace smelt {
namespace {

// The runs that are left to copy.
class RunsLeft final : public BoundKernel {
 public:
  explicit RunsLeft(std::vector<CopiedRun> runs) : runs_(std::move(runs)) {}
  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    for (const CopiedRun& r : runs_) {
      auto* to = static_cast<char*>(outputs[r.output]) + r.to;
      const auto* from = static_cast<const char*>(inputs[r.input]) + r.from;
      ParallelFor(r.bytes, int64_t{1} << 17, [&](int64_t begin, int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
      });
    }
    return OkStatus();
  }
  std::span<const CopiedRun> copied_runs() const override { return runs_; }

 private:
  const std::vector<CopiedRun> runs_;
};

class PartNamer {
 public:
  PartNamer(Plan& plan, Reasons* reasons)
      : plan_(plan), reasons_(reasons), producer_(plan.values.size(), -1) {
    for (size_t i = 0; i < plan.actions.size(); ++i) {
      for (const int v : plan.actions[i].outputs) Producer(v) = static_cast<int>(i);
    }
  }

  void Run() {
    for (PlanAction& action : plan_.actions) {
      if (action.bound == nullptr) continue;
      const auto runs = action.bound->copied_runs();
      if (runs.empty()) continue;
      if (ReadWhereItLies(action, runs)) {
        action.node = nullptr;
      } else if (action.outputs.size() == 1) {
        WriteWhereItGoes(action, runs);
      }
    }
    std::erase_if(plan_.actions, [](const PlanAction& a) { return a.node == nullptr; });
  }

 private:
  PlanValue& At(int value) { return plan_.values[static_cast<size_t>(value)]; }
  int& Producer(int value) { return producer_[static_cast<size_t>(value)]; }

  // Every output becomes a name of the run that it is.
  bool ReadWhereItLies(const PlanAction& action, std::span<const CopiedRun> runs) {
    if (runs.size() != action.outputs.size()) return false;
    for (size_t i = 0; i < runs.size(); ++i) {
      const CopiedRun& run = runs[i];
      const PlanValue& out = At(action.outputs[i]);
      const PlanValue& whole = plan_.RootOf(action.inputs[static_cast<size_t>(run.input)]);
      // A large value is not kept for a small part of it.
      constexpr int64_t kMostKept = 8;
      const bool kept =
          whole.place != PlanValue::Place::kArena || whole.bytes() / kMostKept <= out.bytes();
      if (run.output != static_cast<int>(i) || run.to != 0 || run.bytes != out.bytes() ||
          out.same_as >= 0 || out.place != PlanValue::Place::kArena || !kept) {
        return false;
      }
    }
    for (const CopiedRun& run : runs) {
      PlanValue& out = At(action.outputs[static_cast<size_t>(run.output)]);
      out.same_as = action.inputs[static_cast<size_t>(run.input)];
      out.within = run.from;
    }
    return true;
  }

  // Inputs that can be made where the output has them are.
  void WriteWhereItGoes(PlanAction& action, std::span<const CopiedRun> runs) {
    const int out = action.outputs[0];
    int64_t written = 0;
    for (const CopiedRun& run : runs) written += run.bytes;
    if (At(out).same_as >= 0 || written != At(out).bytes()) return;
    std::vector<CopiedRun> left;
    absl::string_view first_why;
    for (const CopiedRun& run : runs) {
      const int v = action.inputs[static_cast<size_t>(run.input)];
      const absl::string_view why = WhyCopied(v, run);
      if (!why.empty()) {
        if (left.empty()) first_why = why;
        left.push_back(run);
        continue;
      }
      At(v).same_as = out;
      At(v).within = run.to;
    }
    if (!left.empty()) {
      NoteReason(reasons_, *action.node, "copies ", left.size(), " of ", runs.size(),
                 " parts, the first as ", first_why);
    }
    if (left.size() == runs.size()) return;
    if (left.empty()) {
      action.node = nullptr;
    } else {
      action.bound = std::make_unique<RunsLeft>(std::move(left));
    }
  }

  // Empty: what makes the value can write it where the run goes.
  absl::string_view WhyCopied(int value, const CopiedRun& run) {
    const PlanValue& part = At(value);
    const int by = Producer(value);
    if (part.same_as >= 0) return "its bytes are another value's";
    if (part.place != PlanValue::Place::kArena || by < 0) {
      return "it is an argument, a constant or a result";
    }
    if (plan_.actions[static_cast<size_t>(by)].bound == nullptr) {
      return "what makes it is not bound";
    }
    if (run.from != 0 || run.bytes != part.bytes()) return "it is not taken whole, in one run";
    if (run.to % static_cast<int64_t>(kAlignment) != 0) {
      return "it would not begin a cache line there";
    }
    return "";
  }

  Plan& plan_;
  Reasons* const reasons_;
  std::vector<int> producer_;  // by value: the action that makes it; -1: none
};

}  // namespace

void NameParts(Plan& plan, Reasons* reasons) { PartNamer(plan, reasons).Run(); }

}  // namespace smelt
