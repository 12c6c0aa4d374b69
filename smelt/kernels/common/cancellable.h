// Loops whose length, or the time for one element, data decides: they end with their step.
#ifndef SMELT_KERNELS_COMMON_CANCELLABLE_H_
#define SMELT_KERNELS_COMMON_CANCELLABLE_H_

#include <algorithm>
#include <atomic>

#include "absl/functional/function_ref.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/step.h"

namespace smelt {

// OK, CANCELLED or DEADLINE_EXCEEDED. Some 30 ns where the step has a deadline: for every turn of a
// loop that takes a microsecond or more.
inline Status CheckStep(const Step& step) {
  return step.cancellation != nullptr ? step.cancellation->Check() : OkStatus();
}

// ParallelFor (base/parallel.h) that asks the step every `stretch` elements, in every thread, and
// leaves the rest out when it is to end. REQUIRES: stretch > 0.
inline Status CancellableFor(const Step& step, int64_t n, int64_t grain, int64_t stretch,
                             absl::FunctionRef<void(int64_t, int64_t)> body) {
  std::atomic<bool> over{false};
  ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += stretch) {
      if (over.load(std::memory_order_relaxed)) return;
      if (!CheckStep(step).ok()) {
        over.store(true, std::memory_order_relaxed);
        return;
      }
      body(at, std::min(end, at + stretch));
    }
  });
  return over.load() ? CheckStep(step) : OkStatus();
}

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_CANCELLABLE_H_
