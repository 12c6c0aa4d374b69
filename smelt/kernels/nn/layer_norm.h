// Layer normalization bound to its sizes.
#ifndef SMELT_KERNELS_NN_LAYER_NORM_H_
#define SMELT_KERNELS_NN_LAYER_NORM_H_

#include <memory>

#include "smelt/kernels/bound_kernel.h"

namespace smelt::nn {

// (x - mean) / sqrt(variance + epsilon) * scale + offset, for each of `rows` rows of `depth`
// floats, whose biased variance it is. Inputs: x, scale and offset, of one row's elements each.
std::unique_ptr<BoundKernel> BindLayerNorm(float epsilon, int64_t rows, int64_t depth);
// x * factor + (offset - mean * factor), factor = scale / sqrt(variance + epsilon). Inputs: x, and
// those of scale and offset that there are.
std::unique_ptr<BoundKernel> BindAffineNorm(float epsilon, int64_t rows, int64_t depth,
                                            bool has_scale, bool has_offset);
// x / sqrt(mean of x^2 + epsilon) * scale. Inputs: x, and the scale if there is one.
std::unique_ptr<BoundKernel> BindNormOfSquares(float epsilon, int64_t rows, int64_t depth,
                                               bool has_scale);
// The first of bfloat16. Mean and factor are rounded to it, and the result.
std::unique_ptr<BoundKernel> BindNarrowLayerNorm(float epsilon, int64_t rows, int64_t depth);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_LAYER_NORM_H_
