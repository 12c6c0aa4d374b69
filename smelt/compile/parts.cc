#include "smelt/compile/parts.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "smelt/analysis/split_rows.h"
#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"
#include "smelt/compile/head.h"

namespace smelt {
namespace {

// A thread is worth waking for so many multiply-adds.
constexpr int64_t kLeastWork = int64_t{1} << 20;

// What a core has for itself, and the last cache before memory.
int64_t OwnCacheBytes() { return NearCacheBytes(int64_t{1} << 20); }
int64_t LastCacheBytes() { return FarCacheBytes(int64_t{32} << 20); }

int64_t CeilOfRatio(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What a byte costs that moves among so many: nothing in a core's own cache, and from memory about
// three times what it costs from the last cache.
int64_t CostOfByte(int64_t among) {
  if (among <= OwnCacheBytes()) return 0;
  return among <= LastCacheBytes() ? 1 : 3;
}

// The same of weights, which are read in turn, so that none of them stays where all do not fit
// beside the values that live at a time.
int64_t CostOfWeight(int64_t weights) {
  if (2 * weights <= OwnCacheBytes()) return 0;
  return weights <= LastCacheBytes() / 4 * 3 ? 1 : 3;
}

struct Traffic {
  int64_t values = 0;         // bytes that actions leave for each other
  int64_t weights = 0;        // bytes of constants
  std::vector<int64_t> each;  // of `values`

  // Of running the plan `part` rows at a time. Each part reads the weights, in order and ahead;
  // what is written is fetched before, written back and read again, while little is computed of it.
  int64_t CostOf(int64_t part, int64_t rows) const {
    int64_t cost = CeilOfRatio(rows, part) * weights * CostOfWeight(weights);
    for (const int64_t bytes : each) {
      // Beside a value lies what it is made of.
      cost += 4 * bytes * CostOfByte(2 * bytes / rows * part);
    }
    return cost;
  }
};

// Floats on their way to or from int8 are not counted where a kernel does that step.
Traffic TrafficOf(const Plan& plan) {
  std::vector<int> readers(plan.values.size(), 0);
  std::vector<bool> narrowed(plan.values.size(), false);
  for (const PlanAction& action : plan.actions) {
    for (const int v : action.inputs) ++readers[static_cast<size_t>(plan.Root(v))];
    if (action.node->Is("_Int8Quantize")) {
      narrowed[static_cast<size_t>(plan.Root(action.inputs[0]))] = true;
    } else if (action.node->Is("_Int8Dequantize")) {
      narrowed[static_cast<size_t>(plan.Root(action.outputs[0]))] = true;
    }
  }
  Traffic t;
  for (size_t i = 0; i < plan.values.size(); ++i) {
    const PlanValue& v = plan.values[i];
    if (v.same_as >= 0) continue;
    if (v.place == PlanValue::Place::kConstant) t.weights += v.bytes();
    if (v.place != PlanValue::Place::kArena || (narrowed[i] && readers[i] == 1)) continue;
    t.values += v.bytes();
    t.each.push_back(v.bytes());
  }
  return t;
}

// What runs in parts, and what behind them.
struct Choice {
  int64_t part = 0;  // rows of each; 0: all rows run at once
  std::optional<PlanHead> head;
};

// `work`: of all rows.
Choice ChooseParts(const Plan& plan, int64_t rows, int64_t work, Reasons* reasons) {
  const int threads = Threads();
  const int64_t arena = LeastArena(plan);
  const bool fits = arena <= OwnCacheBytes();
  const bool for_threads = threads > 1 && rows >= threads && work / threads >= kLeastWork;
  if (!for_threads && fits) {
    NoteReason(reasons, "all rows at once: what lives at a time, ", arena,
               " bytes, fits a core's cache of ", OwnCacheBytes());
    if (threads > 1) {
      NoteReason(reasons, "threads take no rows: ", rows, " rows of ", work,
                 " multiply-adds in all are too few for ", threads);
    }
    return {};
  }
  Choice choice;
  // Its values move between actions, but no farther than a core's cache.
  choice.head = FindHead(plan, rows, OwnCacheBytes() / 2);
  Traffic traffic = TrafficOf(plan);
  if (choice.head && CostOfWeight(traffic.weights) == 0) choice.head.reset();
  if (choice.head) traffic.weights -= choice.head->weights;
  // The fewest parts that threads share evenly, or more where that costs less.
  const int64_t least = std::min<int64_t>(for_threads ? threads : 2, rows);
  int64_t part = CeilOfRatio(rows, least);
  for (int64_t smaller = part; smaller > 1;) {
    smaller = CeilOfRatio(smaller, 2);
    if (traffic.CostOf(smaller, rows) < traffic.CostOf(part, rows)) part = smaller;
  }
  const int64_t parts = CeilOfRatio(rows, part);
  if (parts <= least && (parts - 1) * traffic.weights > 2 * traffic.values) {
    NoteReason(reasons, "all rows at once: ", parts, " parts would read ", traffic.weights,
               " bytes of weights each, and values that need not move are ", traffic.values,
               " bytes");
    return {};
  }
  NoteReason(reasons, "in ", parts,
             " parts: ", for_threads ? absl::StrCat(threads, " threads take rows") : "one thread",
             "; ", arena, " bytes live at a time, where a core's cache has ", OwnCacheBytes());
  if (choice.head) {
    NoteReason(reasons, "all rows at once behind '", EndpointName(choice.head->cut),
               "': parts would read ", choice.head->weights, " bytes of weights each");
  }
  choice.part = part;
  return choice;
}

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
  const int64_t weights = TrafficOf(plan).weights;
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

}  // namespace

StatusOr<std::unique_ptr<PartedProgram>> PartedProgram::Compile(
    const Graph& body, std::span<const Shape> args, KernelStates& states,
    const std::string& function, const PartsWanted& wanted, Reasons* reasons) {
  ASSIGN_OR_RETURN(Plan plan, Lower(body, args, states, reasons));
  auto made = std::unique_ptr<PartedProgram>(new PartedProgram());
  const bool loop = wanted.kind == PartsWanted::Kind::kOfLoop;
  const bool none = wanted.kind == PartsWanted::Kind::kNone;
  Choice choice;
  // A loop's parts are of its states' rows.
  const int64_t rows = none ? 0 : RowsOf(loop ? args.first(wanted.states) : args);
  if (rows > 1) {
    const std::vector<PartialShape> shapes(args.begin(), args.end());
    const RowSplit split = ProveRowSplit(body, shapes, rows, 1);
    const bool states =
        std::all_of(split.args.begin(), split.args.begin() + static_cast<int64_t>(wanted.states),
                    [](bool rows_too) { return rows_too; });
    const bool all = split.possible() &&
                     std::ranges::all_of(split.results, [](bool rows_too) { return rows_too; }) &&
                     std::ranges::all_of(plan.results, [&](int v) {
                       const Shape& s = plan.values[static_cast<size_t>(v)].shape;
                       return s.rank() > 0 && s[0] == rows;
                     });
    if (!split.possible()) {
      NoteReason(reasons, "all rows at once: ", split.why_not);
    } else if (!all) {
      NoteReason(reasons, "all rows at once: a result does not have a row for each of the ", rows);
    } else if (!states) {
      NoteReason(reasons, "all rows at once: a state does not have a row for each of the ", rows);
    } else {
      choice = loop ? Choice{ChooseLoopPart(plan, rows, split.work, reasons), std::nullopt}
                    : ChooseParts(plan, rows, split.work, reasons);
    }
    if (choice.part > 0 && choice.part < rows) {
      made->rows_ = rows;
      made->part_ = choice.part;
      if (loop) made->least_turns_ = CeilOfRatio(kLeastWork * Threads(), split.work);
      made->split_ = split.args;
    }
  }
  if (made->part_ == 0) {
    ASSIGN_OR_RETURN(made->program_, Program::FromPlan(std::move(plan), function, reasons));
    made->may_stay_ = MayStay(made->program_->plan(), wanted.states);
    return made;
  }
  // A part is lowered anew.
  if (reasons != nullptr) reasons->of_nodes.clear();
  if (choice.head && KeepHead(*choice.head, static_cast<int>(args.size()), plan)) {
    ASSIGN_OR_RETURN(made->head_, Program::FromPlan(std::move(plan), function, reasons));
  }
  // A thread runs a part alone.
  const ScopedThreads alone(1);
  const auto compile = [&](int64_t n, Reasons* why) -> StatusOr<std::unique_ptr<Program>> {
    ASSIGN_OR_RETURN(Plan part, Lower(body, WithRows(args, made->split_, n), states, why));
    if (made->head_ != nullptr && !DropHead(*choice.head, part)) {
      return Internal("no part makes '", EndpointName(choice.head->cut),
                      "', which all rows together do");
    }
    return Program::FromPlan(std::move(part), function, why);
  };
  ASSIGN_OR_RETURN(made->program_, compile(made->part_, reasons));
  made->may_stay_ = MayStay(made->program_->plan(), wanted.states);
  if (const int64_t left = rows % made->part_; left > 0) {
    ASSIGN_OR_RETURN(made->tail_, compile(left, nullptr));
    const std::vector<bool> of_tail = MayStay(made->tail_->plan(), wanted.states);
    for (size_t i = 0; i < wanted.states; ++i) {
      made->may_stay_[i] = made->may_stay_[i] && of_tail[i];
    }
  }
  return made;
}

Shape PartedProgram::ResultShape(size_t i) const {
  const Shape& shape = program_->result(i).shape;
  if (part_ == 0) return shape;
  Dims dims(shape.dims().begin(), shape.dims().end());
  dims[0] = rows_;
  return Shape(std::span<const int64_t>(dims));
}

size_t PartedProgram::OffsetOf(int64_t part, size_t bytes) const {
  return part_ == 0 ? 0 : static_cast<size_t>(part * part_) * (bytes / static_cast<size_t>(rows_));
}

Status PartedProgram::ForParts(int64_t turns, RunParts run) const {
  if (part_ == 0) return run(*program_, 0, 1);
  absl::Mutex mutex;
  Status first;
  const int64_t whole = rows_ / part_;
  const int64_t parts = whole + (tail_ != nullptr ? 1 : 0);
  SharedParallelFor(parts, turns >= least_turns_ ? 1 : parts, [&](int64_t begin, int64_t end) {
    Status status = begin < whole ? run(*program_, begin, std::min(end, whole)) : OkStatus();
    if (status.ok() && end > whole) status = run(*tail_, whole, end);
    if (status.ok()) return;
    absl::MutexLock lock(&mutex);
    if (first.ok()) first = std::move(status);
  });
  return first;
}

Status PartedProgram::RunPart(int64_t part, ProgramRunner& runner, std::span<Tensor* const> args,
                              std::span<const Tensor> results) const {
  absl::InlinedVector<TensorBytes, 8> in, out;
  for (size_t i = 0; i < args.size(); ++i) {
    in.push_back({args[i], OffsetOfArgument(i, part, args[i]->bytes())});
  }
  for (const Tensor& t : results) out.push_back({&t, OffsetOf(part, t.bytes())});
  return runner.Run(in, out);
}

Status PartedProgram::Run(std::span<Tensor* const> args, std::span<Tensor> results,
                          Step& step) const {
  if (part_ == 0) return program_->Run(args, results, step);
  Tensor cut;
  const std::span<Tensor> made = head_ != nullptr ? std::span(&cut, 1) : results;
  for (size_t i = 0; i < made.size(); ++i) {
    ASSIGN_OR_RETURN(made[i],
                     Tensor::Make(program_->result(i).dtype, ResultShape(i), step.allocator));
  }
  RETURN_IF_ERROR(ForParts(1, [&](const Program& program, int64_t begin, int64_t end) -> Status {
    Step own = step;
    ProgramRunner runner(program, own);
    RETURN_IF_ERROR(runner.Start());
    for (int64_t i = begin; i < end; ++i) RETURN_IF_ERROR(RunPart(i, runner, args, made));
    return OkStatus();
  }));
  if (head_ == nullptr) return OkStatus();
  absl::InlinedVector<Tensor*, 8> all(args.begin(), args.end());
  all.push_back(&cut);
  return head_->Run(all, results, step);
}

}  // namespace smelt
