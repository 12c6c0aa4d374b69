// The 16-bit floating types are computed in float: conversions of whole tensors.
#ifndef SMELT_KERNELS_COMMON_VIA_FLOAT_H_
#define SMELT_KERNELS_COMMON_VIA_FLOAT_H_

#include "smelt/tensor/tensor.h"

namespace smelt {

// Float values of a float, half or bfloat16 tensor; float ones are shared, not copied.
StatusOr<Tensor> ToFloat(const Tensor& t, Allocator* allocator);
// The reverse: rounds to nearest even.
StatusOr<Tensor> FromFloat(const Tensor& t, Dtype dtype, Allocator* allocator);

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_VIA_FLOAT_H_
