// Programs for part of the rows: where a body treats every row of its arguments by itself, few rows
// at a time stay in the nearest caches from one action to the next, and threads take parts instead
// of meeting at every action.
#ifndef SMELT_COMPILE_PARTS_H_
#define SMELT_COMPILE_PARTS_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "smelt/compile/program.h"

namespace smelt {

// A body compiled for arguments of given shapes. Thread safe.
class PartedProgram {
 public:
  // As Program::Compile. Whether there are parts, and of how many rows, is chosen by the bytes that
  // an execution of all rows at once moves to and from memory, and the weights that every part
  // reads anew. `in_parts`: false: there are none. Of the parts' programs `reasons` has those of
  // the whole parts.
  static StatusOr<std::unique_ptr<PartedProgram>> Compile(
      const Graph& body, std::span<const Shape> args, KernelStates& states,
      const std::string& function, bool in_parts, Reasons* reasons = nullptr);
  // As Program::Run.
  Status Run(std::span<Tensor* const> args, std::span<Tensor> results, Step& step,
             StepStats* stats) const;

  // The program of all rows, or of a part's.
  const Program& program() const { return *program_; }
  // Of a part; 0: there are no parts.
  int64_t part_rows() const { return part_; }
  // Of the rows that are left behind the last whole part; nullptr: none are.
  const Program* tail() const { return tail_.get(); }

 private:
  PartedProgram() = default;
  Status RunPart(int64_t part, ProgramRunner& runner, std::span<Tensor* const> args,
                 std::span<const Tensor> results) const;

  std::unique_ptr<const Program> program_;
  std::unique_ptr<const Program> tail_;  // of the rows that are left; nullptr: none are
  int64_t rows_ = 0, part_ = 0;
  std::vector<bool> split_;  // by argument: a part takes its rows, not all of it
};

}  // namespace smelt

#endif  // SMELT_COMPILE_PARTS_H_
