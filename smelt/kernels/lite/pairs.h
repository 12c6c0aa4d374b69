// A loop over pairs of quantized numbers that broadcast. Private to this folder.
#ifndef SMELT_KERNELS_LITE_PAIRS_H_
#define SMELT_KERNELS_LITE_PAIRS_H_

#include <algorithm>

#include "smelt/base/parallel.h"
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/kernel.h"

namespace smelt::lite {

// fn(x, y) of elements of T and U, as R.
template <typename T, typename R, typename U = T, typename F>
Status ForPairs(OpContext& ctx, F fn) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  const Shape* shapes[] = {&a.shape(), &b.shape()};
  Broadcast bc;
  if (!MakeBroadcast(shapes, &bc)) return IncompatibleShapes(a.shape(), b.shape());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, bc.shape));
  if (out->num_elements() == 0) return OkStatus();
  const T* x = a.data<T>();
  const U* y = b.data<U>();
  R* z = out->data<R>();
  const int64_t step_x = bc.strides[0].back(), step_y = bc.strides[1].back();
  ParallelFor(NumRows(bc), std::max<int64_t>(1, 16384 / bc.sizes.back()),
              [&](int64_t begin, int64_t end) {
                ForEachRow(bc, begin, end, [&](const int64_t* offsets, int64_t to, int64_t n) {
                  const T* p = x + offsets[0];
                  const U* q = y + offsets[1];
                  for (int64_t i = 0; i < n; ++i) {
                    z[to + i] = static_cast<R>(fn(int32_t{p[i * step_x]}, int32_t{q[i * step_y]}));
                  }
                });
              });
  return OkStatus();
}

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_PAIRS_H_
