// A loop over pairs of quantized numbers that broadcast. Private to this folder.
#ifndef SMELT_KERNELS_LITE_PAIRS_H_
#define SMELT_KERNELS_LITE_PAIRS_H_

#include <algorithm>

#include "smelt/base/parallel.h"
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/isa/fixed.h"
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

// fn(p, q, n, z) of blocks of pairs: p and q are the elements less their zero points, shifted to
// the left, and may be written; z takes n results. T: int8_t or int16_t.
template <typename T, typename F>
Status ForPairBlocks(OpContext& ctx, int32_t zero_a, int32_t zero_b, int left, F fn) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  const Shape* shapes[] = {&a.shape(), &b.shape()};
  Broadcast bc;
  if (!MakeBroadcast(shapes, &bc)) return IncompatibleShapes(a.shape(), b.shape());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, bc.shape));
  if (out->num_elements() == 0) return OkStatus();
  const T *x = a.data<T>(), *y = b.data<T>();
  T* z = out->data<T>();
  const int64_t step_x = bc.strides[0].back(), step_y = bc.strides[1].back();
  const auto load = [left](const T* from, int64_t step, int32_t zero, int32_t* to, int64_t n) {
    if constexpr (sizeof(T) == 1) {
      IsaFixed().from_int8(from, step, zero, left, to, n);
    } else {
      IsaFixed().from_int16(from, step, zero, left, to, n);
    }
  };
  constexpr int64_t kBlock = 512;
  const auto row = [&](int64_t at_x, int64_t at_y, int64_t at_z, int64_t n) {
    int32_t p[kBlock], q[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      load(x + at_x + i * step_x, step_x, zero_a, p, count);
      load(y + at_y + i * step_y, step_y, zero_b, q, count);
      fn(p, q, count, z + at_z + i);
    }
  };
  if (bc.sizes.size() == 1) {
    ParallelFor(bc.sizes[0], 16384, [&](int64_t begin, int64_t end) {
      row(begin * step_x, begin * step_y, begin, end - begin);
    });
    return OkStatus();
  }
  ParallelFor(NumRows(bc), std::max<int64_t>(1, 16384 / bc.sizes.back()),
              [&](int64_t begin, int64_t end) {
                ForEachRow(bc, begin, end, [&](const int64_t* offsets, int64_t to, int64_t n) {
                  row(offsets[0], offsets[1], to, n);
                });
              });
  return OkStatus();
}

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_PAIRS_H_
