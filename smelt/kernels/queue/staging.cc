#include "smelt/kernels/queue/staging.h"

namespace smelt {

Status StagingLimits::Check(int64_t bytes) const {
  if (memory <= 0 || bytes <= memory) return OkStatus();
  return ResourceExhausted("Attempted to insert tensors with combined size of '", bytes,
                           "' bytes into Staging Area with a memory limit of '", memory, "'.");
}

int64_t TupleBytes(const Tuple& tuple) {
  size_t bytes = 0;
  for (const Tensor& t : tuple) bytes += t.valid() ? t.bytes() : 0;
  return static_cast<int64_t>(bytes);
}

}  // namespace smelt
