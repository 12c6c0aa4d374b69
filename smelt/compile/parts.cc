#include "smelt/compile/parts.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "smelt/analysis/split_rows.h"
#include "smelt/base/parallel.h"
#include "smelt/compile/stages.h"

namespace smelt {
namespace {

int64_t CeilOfRatio(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows of each part of a loop's body.
int64_t ChooseLoopPart(const Plan& plan, int64_t rows, int64_t work, Reasons* reasons) {
  const int threads = Threads();
  if (threads == 1) return 0;
  // Loops of fewer turns are done before threads are awake.
  constexpr int64_t kTurns = 32;
  if (work * kTurns / threads < kLeastWork) {
    NoteReason(reasons, "threads take no rows: ", rows, " rows of ", work,
               " multiply-adds a turn are too few for ", threads);
    return 0;
  }
  // So many rows take longer to compute than their weights take to come from another cache.
  constexpr int64_t kLeastRows = 3;
  const int64_t part = CeilOfRatio(rows, threads);
  const int64_t weights = WeightsOf(plan);
  if (part < kLeastRows && 2 * weights > OwnCacheBytes()) {
    NoteReason(reasons, "threads take no rows: each would read ", weights,
               " bytes of weights a turn for ", part, " of them");
    return 0;
  }
  NoteReason(reasons, "each thread takes ", part, " rows through all turns");
  return part;
}

std::vector<Shape> WithRows(std::span<const Shape> args, const std::vector<bool>& split,
                            int64_t rows) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < args.size(); ++i) {
    Dims dims(args[i].dims().begin(), args[i].dims().end());
    if (split[i]) dims[0] = rows;
    shapes.emplace_back(std::span<const int64_t>(dims));
  }
  return shapes;
}

// The rows of the argument with the most elements; 0: none has a dimension.
int64_t RowsOf(std::span<const Shape> args) {
  const Shape* largest = nullptr;
  for (const Shape& s : args) {
    if (s.rank() > 0 && (largest == nullptr || s.num_elements() > largest->num_elements())) {
      largest = &s;
    }
  }
  return largest == nullptr ? 0 : (*largest)[0];
}

// By state: may it be written where it is read?
std::vector<bool> MayStay(const Plan& plan, size_t states) {
  std::vector<bool> may_stay(states, false);
  for (size_t i = 0; i < states; ++i) {
    const int made = plan.Root(plan.results[i]);
    const auto is_state = [&](int v) {
      const PlanValue& root = plan.RootOf(v);
      return root.place == PlanValue::Place::kArgument && root.number == static_cast<int>(i);
    };
    // What it was is given away, or what it is lies elsewhere, too.
    const PlanValue& value = plan.values[static_cast<size_t>(made)];
    if (std::ranges::any_of(plan.results, is_state) || value.place != PlanValue::Place::kResult ||
        value.number != static_cast<int>(i)) {
      continue;
    }
    bool after = false;
    for (const PlanAction& a : plan.actions) {
      const auto reads = std::ranges::count_if(a.inputs, is_state);
      if (after && reads > 0) may_stay[i] = false;
      if (std::ranges::find(a.outputs, made) == a.outputs.end()) continue;
      after = true;
      const auto at = std::ranges::find_if(a.inputs, is_state);
      may_stay[i] = a.bound != nullptr && a.outputs[0] == made && reads == 1 &&
                    plan.Within(*at) == 0 &&
                    a.bound->may_overwrite(static_cast<int>(at - a.inputs.begin()));
    }
  }
  return may_stay;
}

// How many rows a body's arguments and results have that may run in parts of them; 0: it may not.
struct Rows {
  int64_t number = 0;
  RowSplit split;
  std::vector<PlanCut> cuts;  // whose values have them
};

Rows FindRows(const Graph& body, const Plan& plan, std::span<const Shape> args,
              const PartsWanted& wanted, Reasons* reasons) {
  Rows found;
  const bool loop = wanted.kind == PartsWanted::Kind::kOfLoop;
  // A loop's parts are of its states' rows.
  const int64_t rows = RowsOf(loop ? args.first(wanted.states) : args);
  if (rows < 2) return found;
  std::vector<PlanCut> cuts;
  if (!loop) cuts = FindCuts(plan);
  std::vector<Endpoint> values;
  for (const PlanCut& c : cuts) values.push_back(plan.values[static_cast<size_t>(c.value)].of);
  const std::vector<PartialShape> shapes(args.begin(), args.end());
  found.split = ProveRowSplit(body, shapes, rows, 1, values);
  const RowSplit& split = found.split;
  if (!split.possible()) {
    NoteReason(reasons, "all rows at once: ", split.why_not);
    return found;
  }
  const auto have_rows = [](bool rows_too) { return rows_too; };
  if (!std::ranges::all_of(split.results, have_rows) ||
      !std::ranges::all_of(plan.results, [&](int v) {
        const Shape& s = plan.values[static_cast<size_t>(v)].shape;
        return s.rank() > 0 && s[0] == rows;
      })) {
    NoteReason(reasons, "all rows at once: a result does not have a row for each of the ", rows);
    return found;
  }
  if (!std::all_of(split.args.begin(), split.args.begin() + static_cast<int64_t>(wanted.states),
                   have_rows)) {
    NoteReason(reasons, "all rows at once: a state does not have a row for each of the ", rows);
    return found;
  }
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (split.values[i]) found.cuts.push_back(cuts[i]);
  }
  found.number = rows;
  return found;
}

// Plans of a body for different numbers of rows.
class RowPlans {
 public:
  RowPlans(const Graph& body, std::span<const Shape> args, KernelStates& states, const Rows& rows,
           Plan all)
      : body_(body), args_(args), states_(states), split_(rows.split.args) {
    plans_.emplace(rows.number, std::move(all));
  }
  StatusOr<Plan*> Of(int64_t rows, Reasons* reasons) {
    auto it = plans_.find(rows);
    if (it == plans_.end()) {
      ASSIGN_OR_RETURN(Plan plan, Lower(body_, WithRows(args_, split_, rows), states_, reasons));
      it = plans_.emplace(rows, std::move(plan)).first;
    }
    return &it->second;
  }

 private:
  const Graph& body_;
  const std::span<const Shape> args_;
  KernelStates& states_;
  const std::vector<bool>& split_;
  std::map<int64_t, Plan> plans_;
};

}  // namespace

StatusOr<std::unique_ptr<PartedProgram>> PartedProgram::Compile(
    const Graph& body, std::span<const Shape> args, KernelStates& states,
    const std::string& function, const PartsWanted& wanted, Reasons* reasons) {
  ASSIGN_OR_RETURN(Plan plan, Lower(body, args, states, reasons));
  auto made = std::unique_ptr<PartedProgram>(new PartedProgram());
  const bool none = wanted.kind == PartsWanted::Kind::kNone;
  const Rows rows = none ? Rows() : FindRows(body, plan, args, wanted, reasons);
  std::vector<PlanStage> chosen(1);
  if (rows.number > 0 && wanted.kind == PartsWanted::Kind::kOfLoop) {
    chosen[0].part = ChooseLoopPart(plan, rows.number, rows.split.work, reasons);
    if (chosen[0].part > 0) {
      made->least_turns_ = CeilOfRatio(kLeastWork * Threads(), rows.split.work);
    }
  } else if (rows.number > 0) {
    chosen = ChooseStages(plan, rows.cuts, rows.number, rows.split.work, reasons);
  }
  made->rows_ = rows.number;
  made->split_ = none ? std::vector<bool>() : rows.split.args;
  made->split_.resize(args.size(), false);
  made->split_.push_back(true);
  if (chosen.size() == 1 && chosen[0].part == 0) {
    Stage& all = made->stages_.emplace_back();
    ASSIGN_OR_RETURN(all.program, Program::FromPlan(std::move(plan), function, reasons));
    made->may_stay_ = MayStay(all.program->plan(), wanted.states);
    return made;
  }
  RowPlans plans(body, args, states, rows, std::move(plan));
  // What was said of all rows is said of parts.
  if (chosen[0].part > 0 && reasons != nullptr) reasons->of_nodes.clear();
  made->may_stay_.assign(wanted.states, true);
  const auto compile = [&](size_t stage, int64_t n,
                           Reasons* why) -> StatusOr<std::unique_ptr<Program>> {
    ASSIGN_OR_RETURN(Plan * of_rows, plans.Of(n, why));
    Plan part;
    if (chosen.size() == 1) {
      part = std::move(*of_rows);
    } else {
      ASSIGN_OR_RETURN(part, PlanOfStage(*of_rows, chosen, stage, static_cast<int>(args.size())));
    }
    ASSIGN_OR_RETURN(auto program, Program::FromPlan(std::move(part), function, why));
    const std::vector<bool> may_stay = MayStay(program->plan(), wanted.states);
    for (size_t i = 0; i < wanted.states; ++i) {
      made->may_stay_[i] = made->may_stay_[i] && may_stay[i];
    }
    return program;
  };
  for (size_t i = 0; i < chosen.size(); ++i) {
    Stage stage;
    stage.part = chosen[i].part;
    stage.makes = chosen[i].shape;
    // A thread runs a part alone.
    const ScopedThreads team(stage.part > 0 ? 1 : Threads());
    ASSIGN_OR_RETURN(stage.program, compile(i, stage.part > 0 ? stage.part : rows.number, reasons));
    const int64_t left = stage.part > 0 ? rows.number % stage.part : 0;
    if (left > 0) {
      ASSIGN_OR_RETURN(stage.tail, compile(i, left, nullptr));
    }
    made->stages_.push_back(std::move(stage));
  }
  return made;
}

Shape PartedProgram::ResultShape(size_t i) const {
  const Stage& last = stages_.back();
  const Shape& shape = last.program->result(i).shape;
  if (last.part == 0) return shape;
  Dims dims(shape.dims().begin(), shape.dims().end());
  dims[0] = rows_;
  return Shape(std::span<const int64_t>(dims));
}

Status PartedProgram::ForParts(int64_t turns, RunParts run) const {
  return ForPartsOf(stages_[0], turns, run);
}

Status PartedProgram::ForPartsOf(const Stage& stage, int64_t turns, RunParts run) const {
  if (stage.part == 0) return run(*stage.program, 0, 1);
  absl::Mutex mutex;
  Status first;
  const int64_t whole = rows_ / stage.part;
  const int64_t parts = whole + (stage.tail != nullptr ? 1 : 0);
  SharedParallelFor(parts, turns >= least_turns_ ? 1 : parts, [&](int64_t begin, int64_t end) {
    Status status = begin < whole ? run(*stage.program, begin, std::min(end, whole)) : OkStatus();
    if (status.ok() && end > whole) status = run(*stage.tail, whole, end);
    if (status.ok()) return;
    absl::MutexLock lock(&mutex);
    if (first.ok()) first = std::move(status);
  });
  return first;
}

Status PartedProgram::RunStage(const Stage& stage, std::span<Tensor* const> args,
                               std::span<Tensor> results, Step& step) const {
  if (stage.part == 0) return stage.program->Run(args, results, step);
  for (size_t i = 0; i < results.size(); ++i) {
    const bool last = &stage == &stages_.back();
    ASSIGN_OR_RETURN(results[i], Tensor::Make(stage.program->result(i).dtype,
                                              last ? ResultShape(i) : stage.makes, step.allocator));
  }
  return ForPartsOf(stage, 1, [&](const Program& program, int64_t begin, int64_t end) -> Status {
    Step own = step;
    ProgramRunner runner(program, own);
    RETURN_IF_ERROR(runner.Start());
    absl::InlinedVector<TensorBytes, 8> in(args.size()), out(results.size());
    for (int64_t part = begin; part < end; ++part) {
      for (size_t i = 0; i < args.size(); ++i) {
        in[i] = {args[i], split_[i] ? OffsetIn(stage, part, args[i]->bytes()) : 0};
      }
      for (size_t i = 0; i < results.size(); ++i) {
        out[i] = {&results[i], OffsetIn(stage, part, results[i].bytes())};
      }
      RETURN_IF_ERROR(runner.Run(in, out));
    }
    return OkStatus();
  });
}

Status PartedProgram::Run(std::span<Tensor* const> args, std::span<Tensor> results,
                          Step& step) const {
  if (stages_.size() == 1) return RunStage(stages_[0], args, results, step);
  absl::InlinedVector<Tensor*, 8> all(args.begin(), args.end());
  Tensor left;
  for (const Stage& stage : stages_) {
    if (&stage == &stages_.back()) return RunStage(stage, all, results, step);
    Tensor made;
    RETURN_IF_ERROR(RunStage(stage, all, std::span(&made, 1), step));
    left = std::move(made);
    all.resize(args.size());
    all.push_back(&left);
  }
  return OkStatus();
}

}  // namespace smelt
