// Kernels with windows whose taps may stand apart, so that what spreads an image over a batch
// before them, and gathers it behind them, need not run.
#ifndef SMELT_KERNELS_DILATES_WINDOW_H_
#define SMELT_KERNELS_DILATES_WINDOW_H_

#include <cstdint>
#include <memory>
#include <span>

#include "smelt/kernels/op_context.h"

namespace smelt {

// A KernelState may be one.
class DilatesWindow {
 public:
  virtual ~DilatesWindow() = default;
  // A state of the same node for the image that a SpaceToBatchND has spread, and for results that a
  // BatchToSpaceND need not gather: `blocks` for each dimension, 1 where it is left alone, and
  // `paddings`, elements before and behind. nullptr where the kernel does not do that. Keeps what
  // this state keeps. Thread safe.
  virtual std::shared_ptr<KernelState> Dilated(std::span<const int64_t> blocks,
                                               std::span<const int64_t> paddings) const = 0;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_DILATES_WINDOW_H_
