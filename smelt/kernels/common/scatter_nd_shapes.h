// The check of updates that rows of indices scatter over a tensor or a variable. Thread safe.
#ifndef SMELT_KERNELS_COMMON_SCATTER_ND_SHAPES_H_
#define SMELT_KERNELS_COMMON_SCATTER_ND_SHAPES_H_

#include "smelt/tensor/tensor.h"

namespace smelt {

// The op families have different error texts for the same mistakes.
enum class ScatterNdWords : uint8_t {
  kScatter,      // ScatterNd
  kTensor,       // TensorScatterAdd and its kin
  kNonAliasing,  // ScatterNdNonAliasingAdd; a vector of indices is as many rows of one
  kVariable,     // as kNonAliasing
};

// INVALID_ARGUMENT unless updates are of shape indices.shape[:-1] + shape[depth:], depth being the
// last size of indices. REQUIRES: indices of rank >= 1.
Status CheckScatterNdShapes(const Shape& shape, const Shape& indices, const Shape& updates,
                            ScatterNdWords words);

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_SCATTER_ND_SHAPES_H_
