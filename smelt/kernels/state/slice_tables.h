// Restoring from checkpoints of version 1. Thread safe.
#ifndef SMELT_KERNELS_STATE_SLICE_TABLES_H_
#define SMELT_KERNELS_STATE_SLICE_TABLES_H_

#include <string>

#include "smelt/kernels/op_context.h"

namespace smelt {

// A tensor of the files that match `pattern`, or with `shape_and_slice` a part of it. The files
// stay open for the rest of the step. Errors as SliceTableReader has them; NOT_FOUND when no file
// matches or none has the tensor, INVALID_ARGUMENT for another type or shape.
StatusOr<Tensor> RestoreFromSliceTables(const OpContext& ctx, const std::string& pattern,
                                        int preferred_shard, const std::string& name,
                                        const std::string& shape_and_slice, Dtype dtype);

}  // namespace smelt

#endif  // SMELT_KERNELS_STATE_SLICE_TABLES_H_
