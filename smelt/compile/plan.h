// A plan: what a program will do, in terms of values and actions, before anything has an address.
//
// The steps of compile/ each take a plan and leave one, in this order: Lower (shapes are known,
// what needs no run is done), FoldDilations, FoldPads, FoldScales and FoldBiases (what a kernel
// does without a pass of its own), BindActions (kernels are bound, and do what follows them where
// they can), JoinLines (join_lines.h), JoinElementwise (elementwise_chain.h), NameParts (copies of
// whole runs of bytes become names of where they lie), PlanMemory (every value has a place).
// Program (program.h) runs the plan. Not thread safe.
#ifndef SMELT_COMPILE_PLAN_H_
#define SMELT_COMPILE_PLAN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "smelt/compile/reasons.h"
#include "smelt/graph/graph.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

// A tensor of known type and shape.
struct PlanValue {
  enum class Place : uint8_t {
    kArgument,  // the caller's
    kConstant,  // the plan's
    kArena,     // bytes of the run's arena, from `offset` on
    kResult,    // a fresh tensor, which the caller keeps
  };
  Endpoint of;  // in the body
  Dtype dtype = Dtype::kInvalid;
  Shape shape;
  Place place = Place::kArena;
  int number = -1;      // of the argument, constant or result
  int64_t offset = -1;  // in the arena
  int same_as = -1;     // its bytes are among those of that value; -1: it has its own
  int64_t within = 0;   // where they begin there
  int64_t bytes() const {
    return shape.num_elements() * static_cast<int64_t>(Tensor::ElementSize(dtype));
  }
};

// One node that runs.
struct PlanAction {
  const Node* node = nullptr;
  const Kernel* kernel = nullptr;
  std::vector<int> inputs, outputs;    // values
  std::shared_ptr<KernelState> state;  // nullptr: the kernel keeps none
  std::unique_ptr<BoundKernel> bound;  // nullptr: kernel->run is called
  // Nodes that `bound` does as well, one after the other. Their operands are the inputs after the
  // node's own, and the output is that of the last.
  std::vector<const Node*> then;
};

struct Plan {
  std::vector<PlanValue> values;
  std::vector<PlanAction> actions;  // in running order
  std::vector<Tensor> constants;
  std::vector<int> results;  // values, by result
  int64_t arena_bytes = 0;   // the actions' scratch included, which lies last
  int64_t scratch_offset = 0;

  // The value whose bytes are those of `value`.
  int Root(int value) const {
    while (values[static_cast<size_t>(value)].same_as >= 0) {
      value = values[static_cast<size_t>(value)].same_as;
    }
    return value;
  }
  // Where in the root's bytes those of `value` begin.
  int64_t Within(int value) const {
    int64_t bytes = 0;
    for (; value >= 0; value = values[static_cast<size_t>(value)].same_as) {
      bytes += values[static_cast<size_t>(value)].within;
    }
    return bytes;
  }
  const PlanValue& RootOf(int value) const { return values[static_cast<size_t>(Root(value))]; }
  // nullptr: no constant.
  const Tensor* ConstantOf(int value) const {
    const PlanValue& v = values[static_cast<size_t>(value)];
    return v.place == PlanValue::Place::kConstant ? &constants[static_cast<size_t>(v.number)]
                                                  : nullptr;
  }
  // A value like that constant, which is `t`.
  int AddConstant(int like, Tensor t) {
    PlanValue value = values[static_cast<size_t>(like)];
    value.number = static_cast<int>(constants.size());
    value.same_as = -1;
    constants.push_back(std::move(t));
    values.push_back(std::move(value));
    return static_cast<int>(values.size()) - 1;
  }
};

// What kernels keep for the nodes of a body, by id: the same for all shapes, so that weights are
// packed once.
using KernelStates = std::map<int, std::shared_ptr<KernelState>>;

// The plan of a body (regions.h) whose argument i has shape args[i]. UNIMPLEMENTED names the first
// node whose result's shape only a run tells. `body` outlives the plan. Here and below `reasons`
// may be nullptr.
StatusOr<Plan> Lower(const Graph& body, std::span<const Shape> args, KernelStates& states,
                     Reasons* reasons = nullptr);

// A convolution of what a SpaceToBatchND spreads and a BatchToSpaceND gathers is one whose taps
// stand apart (kernels/dilates_window.h).
void FoldDilations(Plan& plan, Reasons* reasons = nullptr);
// A padding by zeros whose readers all pad what they read themselves (kernels/pads_input.h) is
// theirs.
void FoldPads(Plan& plan, Reasons* reasons = nullptr);
// A product by constants, one for each channel, of what only it reads is in the weights
// (kernels/scales_weights.h).
Status FoldScales(Plan& plan, Reasons* reasons = nullptr);
// Constants, one for each channel, that are added to a product behind its bias, be it behind other
// sums, are in the bias.
Status FoldBiases(Plan& plan, Reasons* reasons = nullptr);

// Binds every action whose kernel can be; actions that one kernel does in a pass become one.
Status BindActions(Plan& plan, Reasons* reasons = nullptr);

// Copies that need not be made: part of a value that is one run of its bytes is read where it lies,
// and what becomes part of a larger value is written there at once.
void NameParts(Plan& plan, Reasons* reasons = nullptr);

// Gives every value a place: values that are not needed at the same time share bytes, and an action
// that may writes where it reads.
void PlanMemory(Plan& plan);
// The bytes that the values need which are alive at once, at the worst action: no arena is smaller.
int64_t LeastArena(const Plan& plan);

// From the action that writes a value to the last that reads it; first < 0: none writes it.
struct Lifetime {
  int first = -1, last = -1;
};
// By value; those of values that share bytes are their root's.
std::vector<Lifetime> Lifetimes(const Plan& plan);

// One line for each action, with each value's place, for people and tests. What `reasons` has of an
// action's nodes stands below it.
std::string PlanText(const Plan& plan, const Reasons* reasons = nullptr);

}  // namespace smelt

#endif  // SMELT_COMPILE_PLAN_H_
