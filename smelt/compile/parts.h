// Programs for part of the rows: where a body treats every row of its arguments by itself, few rows
// at a time stay in the nearest caches from one action to the next, and threads take parts instead
// of meeting at every action. Where the body is a loop's, a thread goes on with its rows from turn
// to turn. What is no loop's may be stages of different numbers of rows.
#ifndef SMELT_COMPILE_PARTS_H_
#define SMELT_COMPILE_PARTS_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/compile/program.h"

namespace smelt {

// What parts a body may have.
struct PartsWanted {
  enum class Kind {
    kNone,
    // Stages, chosen by the bytes of values that leave a core's cache, and of weights that every
    // part reads anew.
    kOfRun,
    // One for each thread, which runs the body time and again: chosen where what meetings of
    // threads cost is more than what reading all weights in every thread does.
    kOfLoop,
  };
  Kind kind = Kind::kNone;
  // A loop's: so many arguments come first which results of the same numbers replace.
  size_t states = 0;
};

// A body compiled for arguments of given shapes. Thread safe.
class PartedProgram {
 public:
  // As Program::Compile. Of parts `reasons` has what is said of whole ones.
  static StatusOr<std::unique_ptr<PartedProgram>> Compile(
      const Graph& body, std::span<const Shape> args, KernelStates& states,
      const std::string& function, const PartsWanted& wanted, Reasons* reasons = nullptr);
  // As Program::Run.
  Status Run(std::span<Tensor* const> args, std::span<Tensor> results, Step& step) const;

  // Part of the body, for all rows or few of them (compile/stages.h).
  struct Stage {
    int64_t part = 0;  // rows at a time; 0: all at once
    std::unique_ptr<const Program> program;
    // Of the rows that are left behind the last whole part; nullptr: none are.
    std::unique_ptr<const Program> tail;
    Shape makes;  // what it leaves for the next stage, whose last argument that is, for all rows
  };
  // They run one after the other, each behind the first with one argument more; the last makes the
  // results. Loops have one.
  std::span<const Stage> stages() const { return stages_; }

  // Of a body of one stage, which is a loop's:
  //
  // Calls run(program, begin, end) on ranges of parts that the program is for, at the same time;
  // the first error of any. Without parts that is program(), 0 and 1. `turns`: how often each part
  // is to run; where that is too little work for the team the caller does all.
  using RunParts = absl::FunctionRef<Status(const Program&, int64_t, int64_t)>;
  Status ForParts(int64_t turns, RunParts run) const;
  const Program& program() const { return *stages_[0].program; }
  // May a turn write state i (PartsWanted::states) where it reads it? Where one action makes it of
  // what it was, may write there, and nothing reads it later.
  bool may_stay(size_t i) const { return may_stay_[i]; }
  // Result i, of the parts where there are some, of all rows.
  Shape ResultShape(size_t i) const;
  // Where a part's rows of all rows' `bytes` begin: those of a result, and of argument i.
  size_t OffsetOf(int64_t part, size_t bytes) const { return OffsetIn(stages_[0], part, bytes); }
  size_t OffsetOfArgument(size_t i, int64_t part, size_t bytes) const {
    return split_[i] ? OffsetOf(part, bytes) : 0;
  }

 private:
  PartedProgram() = default;
  size_t OffsetIn(const Stage& stage, int64_t part, size_t bytes) const {
    if (stage.part == 0) return 0;
    return static_cast<size_t>(part * stage.part) * (bytes / static_cast<size_t>(rows_));
  }
  Status ForPartsOf(const Stage& stage, int64_t turns, RunParts run) const;
  Status RunStage(const Stage& stage, std::span<Tensor* const> args, std::span<Tensor> results,
                  Step& step) const;

  std::vector<Stage> stages_;
  int64_t rows_ = 0;
  int64_t least_turns_ = 1;  // that are worth waking threads for
  // By argument, and of what a stage leaves: a part takes its rows, not all of it.
  std::vector<bool> split_;
  std::vector<bool> may_stay_;  // by state
};

}  // namespace smelt

#endif  // SMELT_COMPILE_PARTS_H_
