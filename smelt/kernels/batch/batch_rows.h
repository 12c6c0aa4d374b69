// Rows of several tensors in one, and back.
#ifndef SMELT_KERNELS_BATCH_BATCH_ROWS_H_
#define SMELT_KERNELS_BATCH_BATCH_ROWS_H_

#include <span>
#include <vector>

#include "smelt/kernels/batch/batch_scheduler.h"

namespace smelt {

// The parts one below the other, then the first row of the first part `padding` times. One part
// without padding is given back as it is. INVALID_ARGUMENT when ranks, types or the sizes behind
// the first dimension differ. REQUIRES: at least one part.
StatusOr<Tensor> JoinRows(std::span<const Tensor> parts, int64_t padding, Allocator* allocator);

// The inputs of the tasks joined and padded to an allowed size, input by input.
StatusOr<std::vector<Tensor>> JoinTasks(Batch& batch, const BatchOptions& options);

}  // namespace smelt

#endif  // SMELT_KERNELS_BATCH_BATCH_ROWS_H_
