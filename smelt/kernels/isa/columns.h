// Columns of floats and of bfloat16 reduced to one row, and sums of short rows. Thread safe.
#ifndef SMELT_KERNELS_ISA_COLUMNS_H_
#define SMELT_KERNELS_ISA_COLUMNS_H_

#include <cstdint>

#include "smelt/kernels/isa/isa.h"

namespace smelt {

// y[c] = x[c], x[step + c], ... of `rows` rows, at least one, combined; y overlaps nothing.
using ColumnsFn = void (*)(const float* x, int64_t step, int64_t rows, int64_t n, float* y);
// The same of the bits of bfloat16, combined in float.
using NarrowColumnsFn = void (*)(const uint16_t* x, int64_t step, int64_t rows, int64_t n,
                                 float* y);
struct ColumnLoops {
  ColumnsFn sum, max, min;  // max and min are NaN where any element is
  NarrowColumnsFn narrow_sum, narrow_max, narrow_min;
  // y[r] is the sum of row r of n elements.
  void (*row_sum)(const float* x, int64_t rows, int64_t n, float* y);
  // Is each |x| at most 2^32? NaN is not.
  bool (*modest)(const float* x, int64_t n);
  bool (*narrow_modest)(const uint16_t* x, int64_t n);
};

// Those of the set that Isa() chose.
const ColumnLoops& IsaColumns();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_COLUMNS_H_
