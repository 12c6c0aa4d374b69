// A program: a pure graph made ready for arguments of given shapes. A run computes, and does
// nothing that could be done once: kernels are found and bound, addresses are known, and what lives
// in between has its place in one arena.
#ifndef SMELT_COMPILE_PROGRAM_H_
#define SMELT_COMPILE_PROGRAM_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "smelt/base/resting.h"
#include "smelt/compile/plan.h"
#include "smelt/kernels/step_stats.h"

namespace smelt {

// Part of a tensor's bytes, from `offset` on; the part begins at an element.
struct TensorBytes {
  const Tensor* tensor = nullptr;
  size_t offset = 0;
};

class Program {
 public:
  // `body` is a region's (regions.h), whose argument i will have shape args[i]; `function` is named
  // in errors. The program is for as many threads as the caller's team may have (base/team.h).
  // UNIMPLEMENTED says why there is none for these shapes. `body` outlives the program.
  static StatusOr<std::unique_ptr<Program>> Compile(const Graph& body, std::span<const Shape> args,
                                                    KernelStates& states, std::string function,
                                                    Reasons* reasons = nullptr);
  // The same of Lower's plan for such arguments.
  static StatusOr<std::unique_ptr<Program>> FromPlan(Plan plan, std::string function,
                                                     Reasons* reasons = nullptr);
  ~Program();

  // Runs on arguments of the shapes and types that it was compiled for, in the calling thread and
  // its team. Any number of threads at once. Results are fresh, but for those that are arguments or
  // constants. Errors of kernels name the node.
  Status Run(std::span<Tensor* const> args, std::span<Tensor> results, Step& step) const;

  // See PlanText.
  std::string Text() const { return PlanText(plan_); }
  const Plan& plan() const { return plan_; }
  // Dtype and shape of result i.
  const PlanValue& result(size_t i) const {
    return plan_.values[static_cast<size_t>(plan_.results[i])];
  }

 private:
  friend class ProgramRunner;
  struct State;
  // Where an argument or a result goes.
  struct Patch {
    int position;  // in State::pointers, or the value in State::tensors
    int number;
    int64_t within;  // its bytes begin so far behind that
  };
  explicit Program(Plan plan, std::string function);
  StatusOr<std::unique_ptr<State>> Take(Allocator* allocator) const;
  Status RunIn(State& state, std::span<Tensor* const> args, std::span<Tensor> results,
               Step& step) const;
  Status RunActions(State& state, Step& step) const;
  void DropTensors(State& state) const;
  Status RunKernel(size_t action, State& state, Step& step, void* const* outputs) const;

  const Plan plan_;
  const std::string function_;
  std::vector<int> first_input_, first_output_;  // by action: in State::pointers
  int num_pointers_ = 0;
  std::vector<Patch> arguments_, fresh_results_;
  // Of values that unbound kernels read: as tensors.
  std::vector<Patch> argument_tensors_, result_tensors_;
  std::vector<bool> as_tensor_;  // by value

  // Between runs.
  mutable Resting<State> states_;
};

// Runs a program time and again on parts of tensors: the iterations of a loop. One thread.
class ProgramRunner {
 public:
  // All of them outlive the runner.
  ProgramRunner(const Program& program, Step& step);
  ~ProgramRunner();
  // Before the first run.
  Status Start();
  // Results are written where `results` says, which is nowhere that an argument lies, but for one
  // that the action which makes the result may overwrite, and nothing reads later. Results that are
  // one value may have one place.
  Status Run(std::span<const TensorBytes> args, std::span<const TensorBytes> results);

 private:
  const Program& program_;
  Step& step_;
  std::unique_ptr<Program::State> state_;
};

}  // namespace smelt

#endif  // SMELT_COMPILE_PROGRAM_H_
