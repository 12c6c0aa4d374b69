// Constants of mapped files that have been read for the last time.
#ifndef SMELT_KERNELS_COMMON_READ_ONCE_H_
#define SMELT_KERNELS_COMMON_READ_ONCE_H_

#include "smelt/tensor/tensor.h"

namespace smelt {

// Gives the pages of large constants back once they have another form, so that they do not count
// as memory of the process twice. Who reads them all the same finds them in the file. Thread safe.
inline void DropOriginal(const Tensor& t) {
  constexpr size_t kWorthDropping = 256 << 10;
  if (t.bytes() >= kWorthDropping && t.buffer()->mapped_file()) DropMappedPages(t.raw(), t.bytes());
}

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_READ_ONCE_H_
