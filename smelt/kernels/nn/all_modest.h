// Numbers whose sums of products are finite.
#ifndef SMELT_KERNELS_NN_ALL_MODEST_H_
#define SMELT_KERNELS_NN_ALL_MODEST_H_

#include <cstdint>

#include "smelt/tensor/dtype.h"

namespace smelt::nn {

// Is each |x| at most 2^32? Sums of products of up to three such numbers are no NaN, unless there
// are 2^31 of them. On the calling thread's team.
bool AllModest(const float* x, int64_t n);
// The same of `dtype`: float or bfloat16, of which another one is not.
bool AllModest(const void* x, int64_t n, Dtype dtype);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_ALL_MODEST_H_
