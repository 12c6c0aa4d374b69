// Bound kernels that some runs alone want, made by those.
#ifndef SMELT_KERNELS_COMMON_RUN_INSTEAD_H_
#define SMELT_KERNELS_COMMON_RUN_INSTEAD_H_

#include <functional>
#include <memory>

#include "smelt/kernels/bound_kernel.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// nullptr: there is no such form. Called by runs, any number at once.
using MakeBound = std::function<StatusOr<std::unique_ptr<BoundKernel>>()>;

// Runs what `make` makes, in scratch of its own. INTERNAL, with `missing`, where that is nothing.
inline Status RunInstead(const MakeBound& make, const char* missing, const void* const* inputs,
                         void* const* outputs) {
  ASSIGN_OR_RETURN(const auto made, make());
  if (made == nullptr) return Internal(missing);
  const auto bytes = static_cast<int64_t>(made->scratch_bytes());
  ASSIGN_OR_RETURN(Tensor scratch, Tensor::Make(Dtype::kUint8, Shape({bytes}), HeapAllocator()));
  return made->Run(inputs, outputs, scratch.raw());
}

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_RUN_INSTEAD_H_
