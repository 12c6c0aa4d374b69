// Kernels that pad their first input by zeros themselves, so that a Pad before them need not run.
#ifndef SMELT_KERNELS_PADS_INPUT_H_
#define SMELT_KERNELS_PADS_INPUT_H_

#include <cstdint>
#include <memory>
#include <span>

#include "smelt/kernels/op_context.h"

namespace smelt {

// A KernelState may be one.
class PadsInput {
 public:
  virtual ~PadsInput() = default;
  // A state of the same node for inputs that lack this padding: elements before and behind, for
  // each dimension. nullptr where the kernel does not pad so. Keeps what this state keeps. Thread
  // safe.
  virtual std::shared_ptr<KernelState> Padded(std::span<const int64_t> paddings) const = 0;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_PADS_INPUT_H_
