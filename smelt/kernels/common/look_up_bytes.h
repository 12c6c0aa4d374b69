// A table of all bytes over a whole tensor.
#ifndef SMELT_KERNELS_COMMON_LOOK_UP_BYTES_H_
#define SMELT_KERNELS_COMMON_LOOK_UP_BYTES_H_

#include <cstdint>

#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/byte_table.h"

namespace smelt {

// LookUpBytes on the calling thread's team.
inline void LookUpAllBytes(const void* table, const void* x, void* y, int64_t n) {
  constexpr int64_t kGrain = 1 << 16;
  ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    LookUpBytes(static_cast<const uint8_t*>(table), static_cast<const uint8_t*>(x) + begin,
                static_cast<uint8_t*>(y) + begin, end - begin);
  });
}

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_LOOK_UP_BYTES_H_
