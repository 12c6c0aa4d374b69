// How a reduction runs over its input. The shape is collapsed: dimensions of size 1 vanish,
// neighbors that are both reduced or both kept become one. What remains is loops over outer offsets
// around an inner run that is either reduced (a row) or kept (columns).
#ifndef SMELT_KERNELS_REDUCE_REDUCE_PLAN_H_
#define SMELT_KERNELS_REDUCE_REDUCE_PLAN_H_

#include "absl/container/inlined_vector.h"
#include "smelt/base/status.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

using ReducedDims = absl::InlinedVector<bool, 8>;  // by dimension, whether it is reduced

struct ReduceLoop {
  Dims sizes;
  Dims strides;  // in elements
  int64_t count = 1;
  void Add(int64_t size, int64_t stride) {
    sizes.push_back(size);
    strides.push_back(stride);
    count *= size;
  }
};

struct ReducePlan {
  ReduceLoop kept;     // around the inner run
  ReduceLoop reduced;  // around the inner run
  int64_t inner = 1;
  bool inner_reduced = true;
  // Of an inner run that is kept: so many neighbors are one result in the end.
  int64_t group = 1;
  int64_t reduced_elements = 1;
};

ReducePlan PlanReduction(const Shape& shape, const ReducedDims& reduce);

// The dimensions that `axes` names; negative ones count from behind. INVALID_ARGUMENT: one that the
// shape has not, or twice.
StatusOr<ReducedDims> ReducedDimensions(const Shape& shape, const Tensor& axes);

// Calls fn(offset) for iterations [begin, end) of the loop nest.
template <typename F>
void ForOffsets(const ReduceLoop& loop, int64_t begin, int64_t end, F fn) {
  const size_t n = loop.sizes.size();
  if (n == 0) {
    if (begin < end) fn(int64_t{0});
    return;
  }
  if (n == 1) {
    for (int64_t i = begin; i < end; ++i) fn(i * loop.strides[0]);
    return;
  }
  Dims at(n);
  int64_t rest = begin, offset = 0;
  for (size_t d = n; d-- > 0;) {
    at[d] = rest % loop.sizes[d];
    rest /= loop.sizes[d];
    offset += at[d] * loop.strides[d];
  }
  for (int64_t i = begin; i < end; ++i) {
    fn(offset);
    for (size_t d = n; d-- > 0;) {
      offset += loop.strides[d];
      if (++at[d] < loop.sizes[d]) break;
      offset -= loop.sizes[d] * loop.strides[d];
      at[d] = 0;
    }
  }
}

}  // namespace smelt

#endif  // SMELT_KERNELS_REDUCE_REDUCE_PLAN_H_
