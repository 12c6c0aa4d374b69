#include "smelt/compile/program.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "absl/time/clock.h"
#include "smelt/base/out_of_memory.h"
#include "smelt/compile/elementwise_chain.h"
#include "smelt/compile/join_lines.h"
#include "smelt/compile/placing_allocator.h"
#include "smelt/kernels/node_error.h"

namespace smelt {
namespace {

void* Behind(void* at, int64_t bytes) { return static_cast<char*>(at) + bytes; }

// The value that lies `within` bytes behind the beginning of t, whose type may be another: what is
// written in place need not have the type of what was read.
Tensor PartOf(const Tensor& t, const PlanValue& value, int64_t within) {
  if (value.dtype == t.dtype() && value.bytes() == static_cast<int64_t>(t.bytes())) {
    return t.WithShape(value.shape);
  }
  const BufferRef& buffer = t.buffer();
  const auto* begin = static_cast<const char*>(t.raw());
  return {value.dtype, value.shape, buffer,
          static_cast<size_t>(begin + within - static_cast<const char*>(buffer->data()))};
}

bool Overlap(const Tensor& t, const void* place, size_t bytes) {
  const auto* at = static_cast<const char*>(t.raw());
  const auto* begin = static_cast<const char*>(place);
  return std::less()(at, begin + bytes) && std::less()(begin, at + t.bytes());
}

}  // namespace

// What one run needs, kept for later ones.
struct Program::State {
  Allocator* allocator = nullptr;  // that the arena is from
  BufferRef arena;
  std::vector<void*> pointers;
  void* scratch = nullptr;
  std::vector<Tensor> tensors;  // by value, those that as_tensor_ says
  // What unbound kernels are called with, as pointers are laid out.
  std::vector<Tensor*> inputs;
  std::vector<Tensor> outputs;
  std::unique_ptr<bool[]> no_last_use;  // false for every input that a kernel has
  PlacingAllocator placing;

  char* At(int64_t offset) const { return static_cast<char*>(arena->data()) + offset; }
};

StatusOr<std::unique_ptr<Program>> Program::Compile(const Graph& body, std::span<const Shape> args,
                                                    KernelStates& states, std::string function,
                                                    Reasons* reasons) {
  ASSIGN_OR_RETURN(Plan plan, Lower(body, args, states, reasons));
  return FromPlan(std::move(plan), std::move(function), reasons);
}

StatusOr<std::unique_ptr<Program>> Program::FromPlan(Plan plan, std::string function,
                                                     Reasons* reasons) {
  FoldDilations(plan, reasons);
  FoldPads(plan, reasons);
  RETURN_IF_ERROR(FoldScales(plan, reasons));
  RETURN_IF_ERROR(FoldBiases(plan, reasons));
  RETURN_IF_ERROR(BindActions(plan, reasons));
  JoinLines(plan, reasons);
  JoinElementwise(plan, reasons);
  NameParts(plan, reasons);
  PlanMemory(plan);
  return std::unique_ptr<Program>(new Program(std::move(plan), std::move(function)));
}

Program::Program(Plan plan, std::string function)
    : plan_(std::move(plan)),
      function_(std::move(function)),
      as_tensor_(plan_.values.size(), false) {
  const auto add = [&](const std::vector<int>& values) {
    const int first = num_pointers_;
    for (const int v : values) {
      const PlanValue& root = plan_.RootOf(v);
      if (root.place == PlanValue::Place::kArgument) {
        arguments_.push_back({num_pointers_, root.number, plan_.Within(v)});
      } else if (root.place == PlanValue::Place::kResult) {
        fresh_results_.push_back({num_pointers_, root.number, plan_.Within(v)});
      }
      ++num_pointers_;
    }
    return first;
  };
  for (const PlanAction& action : plan_.actions) {
    first_input_.push_back(add(action.inputs));
    first_output_.push_back(add(action.outputs));
    if (action.bound != nullptr) continue;
    for (const int v : action.inputs) as_tensor_[static_cast<size_t>(v)] = true;
  }
  for (size_t v = 0; v < plan_.values.size(); ++v) {
    const PlanValue& root = plan_.RootOf(static_cast<int>(v));
    if (!as_tensor_[v]) continue;
    if (root.place == PlanValue::Place::kArgument) {
      argument_tensors_.push_back(
          {static_cast<int>(v), root.number, plan_.Within(static_cast<int>(v))});
    } else if (root.place == PlanValue::Place::kResult) {
      result_tensors_.push_back(
          {static_cast<int>(v), root.number, plan_.Within(static_cast<int>(v))});
    }
  }
}

Program::~Program() = default;

StatusOr<std::unique_ptr<Program::State>> Program::Take(Allocator* allocator) const {
  // Another core's will be wanted there again.
  auto resting = states_.Take([&](const State& s) { return s.allocator == allocator; });
  if (resting != nullptr) return resting;
  auto state = std::make_unique<State>();
  state->allocator = allocator;
  // An arena of no bytes has an address, too.
  ASSIGN_OR_RETURN(state->arena, allocator->Allocate(
                                     std::max<size_t>(static_cast<size_t>(plan_.arena_bytes), 1)));
  state->scratch = state->At(plan_.scratch_offset);
  const auto address = [&](int v) -> void* {
    const PlanValue& root = plan_.RootOf(v);
    switch (root.place) {
      case PlanValue::Place::kArena:
        return state->At(root.offset + plan_.Within(v));
      case PlanValue::Place::kConstant:
        return static_cast<char*>(
                   const_cast<void*>(plan_.constants[static_cast<size_t>(root.number)].raw())) +
               plan_.Within(v);
      default:
        return nullptr;  // each run's own
    }
  };
  for (const PlanAction& action : plan_.actions) {
    for (const int v : action.inputs) state->pointers.push_back(address(v));
    for (const int v : action.outputs) state->pointers.push_back(address(v));
  }
  state->outputs.resize(state->pointers.size());
  state->tensors.resize(plan_.values.size());
  state->inputs.resize(state->pointers.size());
  state->no_last_use = std::make_unique<bool[]>(state->pointers.size());
  for (size_t i = 0; i < plan_.actions.size(); ++i) {
    for (size_t k = 0; k < plan_.actions[i].inputs.size(); ++k) {
      state->inputs[static_cast<size_t>(first_input_[i]) + k] =
          &state->tensors[static_cast<size_t>(plan_.actions[i].inputs[k])];
    }
  }
  for (size_t v = 0; v < plan_.values.size(); ++v) {
    if (!as_tensor_[v]) continue;
    const PlanValue& value = plan_.values[v];
    const PlanValue& root = plan_.RootOf(static_cast<int>(v));
    if (root.place == PlanValue::Place::kArena) {
      state->tensors[v] =
          Tensor(value.dtype, value.shape, state->arena,
                 static_cast<size_t>(root.offset + plan_.Within(static_cast<int>(v))));
    } else if (root.place == PlanValue::Place::kConstant) {
      state->tensors[v] = PartOf(plan_.constants[static_cast<size_t>(root.number)], value,
                                 plan_.Within(static_cast<int>(v)));
    }
  }
  return state;
}

Status Program::Run(std::span<Tensor* const> args, std::span<Tensor> results, Step& step) const {
  ASSIGN_OR_RETURN(std::unique_ptr<State> state, Take(step.allocator));
  const Status status = RunIn(*state, args, results, step);
  DropTensors(*state);
  states_.Rest(std::move(state));
  return status;
}

// Tensors of arguments and results are no concern of the program between runs.
void Program::DropTensors(State& state) const {
  for (const auto* list : {&argument_tensors_, &result_tensors_}) {
    for (const Patch& p : *list) state.tensors[static_cast<size_t>(p.position)] = Tensor();
  }
}

Status Program::RunIn(State& state, std::span<Tensor* const> args, std::span<Tensor> results,
                      Step& step) const {
  for (size_t i = 0; i < results.size(); ++i) {
    const PlanValue& value = plan_.values[static_cast<size_t>(plan_.results[i])];
    const PlanValue& root = plan_.RootOf(plan_.results[i]);
    if (root.place == PlanValue::Place::kResult && root.number == static_cast<int>(i)) {
      ASSIGN_OR_RETURN(results[i], Tensor::Make(value.dtype, value.shape, step.allocator));
    }
  }
  for (const Patch& p : arguments_) {
    state.pointers[static_cast<size_t>(p.position)] =
        Behind(args[static_cast<size_t>(p.number)]->raw(), p.within);
  }
  for (const Patch& p : fresh_results_) {
    state.pointers[static_cast<size_t>(p.position)] =
        Behind(results[static_cast<size_t>(p.number)].raw(), p.within);
  }
  const auto part = [&](const Patch& p, const Tensor& t) {
    return PartOf(t, plan_.values[static_cast<size_t>(p.position)], p.within);
  };
  for (const Patch& p : argument_tensors_) {
    state.tensors[static_cast<size_t>(p.position)] = part(p, *args[static_cast<size_t>(p.number)]);
  }
  for (const Patch& p : result_tensors_) {
    state.tensors[static_cast<size_t>(p.position)] =
        part(p, results[static_cast<size_t>(p.number)]);
  }
  RETURN_IF_ERROR(RunActions(state, step));
  for (size_t i = 0; i < results.size(); ++i) {
    const PlanValue& value = plan_.values[static_cast<size_t>(plan_.results[i])];
    const PlanValue& root = plan_.RootOf(plan_.results[i]);
    if (results[i].valid()) continue;
    const Tensor& from = root.place == PlanValue::Place::kArgument
                             ? *args[static_cast<size_t>(root.number)]
                         : root.place == PlanValue::Place::kConstant
                             ? plan_.constants[static_cast<size_t>(root.number)]
                             : results[static_cast<size_t>(root.number)];
    results[i] = from.WithShape(value.shape);
  }
  return OkStatus();
}

Status Program::RunActions(State& state, Step& step) const {
  const bool check = step.cancellation != nullptr;
  for (size_t i = 0; i < plan_.actions.size(); ++i) {
    if (check) RETURN_IF_ERROR(step.cancellation->Check());
    const PlanAction& action = plan_.actions[i];
    void** inputs = state.pointers.data() + first_input_[i];
    void** outputs = state.pointers.data() + first_output_[i];
    const int64_t start = step.stats ? absl::GetCurrentTimeNanos() : 0;
    const Status status =
        action.bound == nullptr
            ? RunKernel(i, state, step, outputs)
            : OrOutOfMemory([&] { return action.bound->Run(inputs, outputs, state.scratch); });
    if (!status.ok()) [[unlikely]] {
      return WithNode(status, function_, *action.node);
    }
    if (step.stats) [[unlikely]] {
      int64_t bytes = 0;
      for (const int v : action.outputs) bytes += plan_.values[static_cast<size_t>(v)].bytes();
      step.stats->Add(*action.node, action.kernel->name, start, bytes, &action);
    }
  }
  return OkStatus();
}

// The kernel takes the outputs' places when it asks for memory; what it puts elsewhere is copied.
Status Program::RunKernel(size_t index, State& state, Step& step, void* const* outputs) const {
  const PlanAction& action = plan_.actions[index];
  const size_t count = action.inputs.size();
  const std::span<Tensor> out(state.outputs.data() + first_output_[index], action.outputs.size());
  const auto value = [&](size_t i) -> const PlanValue& {
    return plan_.values[static_cast<size_t>(action.outputs[i])];
  };
  for (size_t i = 0; i < out.size(); ++i) {
    state.placing.Offer(outputs[i], static_cast<size_t>(value(i).bytes()));
  }
  Allocator* allocator = std::exchange(step.allocator, &state.placing);
  state.placing.set_fallback(allocator);
  OpContext ctx(*action.node, action.state.get(), step,
                {state.inputs.data() + first_input_[index], count},
                {state.no_last_use.get(), count}, out);
  Status status = OrOutOfMemory([&] { return action.kernel->run(ctx); });
  step.allocator = allocator;
  for (size_t i = 0; status.ok() && i < out.size(); ++i) {
    if (!out[i].valid()) {
      status = Internal("kernel ", action.kernel->name, " left output ", i, " unset");
    } else if (out[i].dtype() != value(i).dtype || !(out[i].shape() == value(i).shape)) {
      status = Internal("kernel ", action.kernel->name, " made ", DtypeName(out[i].dtype()),
                        out[i].shape().ToString(), " where ", DtypeName(value(i).dtype),
                        value(i).shape.ToString(), " was to come");
    } else if (out[i].raw() != outputs[i] && out[i].bytes() > 0) {
      // Places of one size may have gone to other outputs than theirs.
      for (size_t k = i + 1; k < out.size() && status.ok(); ++k) {
        if (!out[k].valid() || !Overlap(out[k], outputs[i], out[i].bytes())) continue;
        auto moved = out[k].Clone();
        if (moved.ok()) out[k] = *std::move(moved);
        status = moved.status();
      }
      std::memcpy(outputs[i], out[i].raw(), out[i].bytes());
    }
  }
  for (Tensor& t : out) t = Tensor();
  state.placing.Withdraw();
  return status;
}

ProgramRunner::ProgramRunner(const Program& program, Step& step) : program_(program), step_(step) {}

Status ProgramRunner::Start() {
  ASSIGN_OR_RETURN(state_, program_.Take(step_.allocator));
  return OkStatus();
}

ProgramRunner::~ProgramRunner() {
  if (state_ == nullptr) return;
  program_.DropTensors(*state_);
  program_.states_.Rest(std::move(state_));
}

Status ProgramRunner::Run(std::span<const TensorBytes> args, std::span<const TensorBytes> results) {
  const Plan& plan = program_.plan_;
  const auto address = [](const TensorBytes& b) {
    return const_cast<char*>(static_cast<const char*>(b.tensor->raw())) + b.offset;
  };
  const auto patch = [&](const std::vector<Program::Patch>& list,
                         std::span<const TensorBytes> places) {
    for (const Program::Patch& p : list) {
      state_->pointers[static_cast<size_t>(p.position)] =
          Behind(address(places[static_cast<size_t>(p.number)]), p.within);
    }
  };
  patch(program_.arguments_, args);
  patch(program_.fresh_results_, results);
  const auto patch_tensors = [&](const std::vector<Program::Patch>& list,
                                 std::span<const TensorBytes> places) {
    for (const Program::Patch& p : list) {
      const TensorBytes& b = places[static_cast<size_t>(p.number)];
      const BufferRef& buffer = b.tensor->buffer();
      const auto at =
          static_cast<size_t>(address(b) + p.within - static_cast<char*>(buffer->data()));
      const PlanValue& value = plan.values[static_cast<size_t>(p.position)];
      state_->tensors[static_cast<size_t>(p.position)] =
          Tensor(value.dtype, value.shape, buffer, at);
    }
  };
  patch_tensors(program_.argument_tensors_, args);
  patch_tensors(program_.result_tensors_, results);
  RETURN_IF_ERROR(program_.RunActions(*state_, step_));
  for (size_t i = 0; i < results.size(); ++i) {
    const PlanValue& root = plan.RootOf(plan.results[i]);
    const auto number = static_cast<size_t>(root.number);
    const void* from = nullptr;
    if (root.place == PlanValue::Place::kArgument) {
      from = address(args[number]);
    } else if (root.place == PlanValue::Place::kConstant) {
      from = plan.constants[number].raw();
    } else if (number != i) {
      from = address(results[number]);
    }
    // Results that are one value may have one place.
    if (from != nullptr && from != address(results[i]) && root.bytes() > 0) {
      std::memcpy(address(results[i]), from, static_cast<size_t>(root.bytes()));
    }
  }
  return OkStatus();
}

}  // namespace smelt
