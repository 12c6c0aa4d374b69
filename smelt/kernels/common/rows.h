// Tensors taken apart and put together along their first dimension. Thread safe.
#ifndef SMELT_KERNELS_COMMON_ROWS_H_
#define SMELT_KERNELS_COMMON_ROWS_H_

#include "smelt/tensor/tensor.h"

namespace smelt {

// The dimensions but the first. REQUIRES: rank >= 1.
inline Shape RowShape(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

// Row i, of that shape, sharing the bytes. REQUIRES: rank >= 1, 0 <= i < dim(0).
inline Tensor RowOf(const Tensor& t, int64_t i) {
  return t.Rows(i, i + 1).WithShape(RowShape(t.shape()));
}

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_ROWS_H_
