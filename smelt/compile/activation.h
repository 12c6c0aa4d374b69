// Activations that are spelled out: found by what they compute.
#ifndef SMELT_COMPILE_ACTIVATION_H_
#define SMELT_COMPILE_ACTIVATION_H_

#include <optional>

#include "smelt/compile/readers.h"
#include "smelt/graph/fused_ops.h"

namespace smelt {

// Actions that make one value of another, element by element.
struct SpelledActivation {
  Activation activation;
  std::vector<size_t> actions;  // in order; the last one makes the result
};

// What is done to `value`, where all who read it, or what is computed of it in between, are actions
// of one activation, which no shorter run of them is. The actions are run on floats between -30
// and 30, whatever their type, and have to give what the activation gives. `readers` are the
// plan's.
std::optional<SpelledActivation> FindActivation(const Plan& plan, int value,
                                                const PlanReaders& readers);

}  // namespace smelt

#endif  // SMELT_COMPILE_ACTIVATION_H_
