// What staging areas and staging maps share: their limits.
#ifndef SMELT_KERNELS_QUEUE_STAGING_H_
#define SMELT_KERNELS_QUEUE_STAGING_H_

#include <cstdint>

#include "smelt/kernels/queue/queue.h"

namespace smelt {

inline constexpr absl::string_view kStagingCancelled = "Step was cancelled";

// 0: no limit.
struct StagingLimits {
  int64_t capacity = 0;
  int64_t memory = 0;

  // RESOURCE_EXHAUSTED for a tuple that never fits.
  Status Check(int64_t bytes) const;
  // Must a tuple of so many bytes wait beside what is held?
  bool Full(int64_t held, int64_t held_bytes, int64_t bytes) const {
    return (capacity > 0 && held >= capacity) || (memory > 0 && held_bytes + bytes > memory);
  }
};

int64_t TupleBytes(const Tuple& tuple);

}  // namespace smelt

#endif  // SMELT_KERNELS_QUEUE_STAGING_H_
