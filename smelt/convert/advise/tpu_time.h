// How long a core of an accelerator computes, at best: a roofline over the nodes of functions.
// Thread safe as long as nobody changes the graphs.
#ifndef SMELT_CONVERT_ADVISE_TPU_TIME_H_
#define SMELT_CONVERT_ADVISE_TPU_TIME_H_

#include <span>

#include "smelt/graph/shape/infer.h"

namespace smelt {

// What a core does in a second at its peak.
struct CoreRates {
  double products = 0;  // multiplications with their additions, of the matrix units
  double bytes = 0;     // that go between its memory and its registers
};

struct CoreTime {
  double seconds = 0;
  double transferred = 0;  // bytes that go in and out by arguments and results
  int calls = 0;           // of programs of the accelerator
  int unknown = 0;         // products of unknown size, which count as 1 element
};

// The programs (TPUPartitionedCall) that the function runs when its arguments have these shapes, of
// a resource what it holds. Loop bodies and all branches count once. INVALID_ARGUMENT when the
// shapes contradict what the function does.
StatusOr<CoreTime> TimeOnCore(const Function& f, std::span<const PartialShape> arguments,
                              const CoreRates& rates);

}  // namespace smelt

#endif  // SMELT_CONVERT_ADVISE_TPU_TIME_H_
