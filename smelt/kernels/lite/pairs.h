// A loop over pairs of quantized numbers that broadcast. Private to this folder.
#ifndef SMELT_KERNELS_LITE_PAIRS_H_
#define SMELT_KERNELS_LITE_PAIRS_H_

#include <algorithm>

#include "smelt/base/parallel.h"
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/isa/fixed.h"
#include "smelt/kernels/kernel.h"

namespace smelt::lite {

// Which elements of two inputs meet, and the output for them. Elements of a row advance by 0 or 1.
struct PairsOfInputs {
  Broadcast bc;
  Tensor* out = nullptr;
  int64_t step_x() const { return bc.strides[0].back(); }
  int64_t step_y() const { return bc.strides[1].back(); }
};
inline StatusOr<PairsOfInputs> AllocatePairs(OpContext& ctx) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  const Shape* shapes[] = {&a.shape(), &b.shape()};
  PairsOfInputs pairs;
  if (!MakeBroadcast(shapes, &pairs.bc)) return IncompatibleShapes(a.shape(), b.shape());
  ASSIGN_OR_RETURN(pairs.out, ctx.Allocate(0, pairs.bc.shape));
  return pairs;
}

// row(at_x, at_y, at_z, n) of rows of pairs, in parallel. REQUIRES: there are some.
template <typename F>
void ForPairRows(const Broadcast& bc, F row) {
  constexpr int64_t kGrain = 1 << 14;
  if (bc.sizes.size() == 1) {
    const int64_t step_x = bc.strides[0].back(), step_y = bc.strides[1].back();
    ParallelFor(bc.sizes[0], kGrain, [&](int64_t begin, int64_t end) {
      row(begin * step_x, begin * step_y, begin, end - begin);
    });
    return;
  }
  ParallelFor(NumRows(bc), std::max<int64_t>(1, kGrain / bc.sizes.back()),
              [&](int64_t begin, int64_t end) {
                ForEachRow(bc, begin, end, [&](const int64_t* offsets, int64_t to, int64_t n) {
                  row(offsets[0], offsets[1], to, n);
                });
              });
}

// fn(x, y) of elements of T and U, as R.
template <typename T, typename R, typename U = T, typename F>
Status ForPairs(OpContext& ctx, F fn) {
  ASSIGN_OR_RETURN(const PairsOfInputs pairs, AllocatePairs(ctx));
  if (pairs.out->num_elements() == 0) return OkStatus();
  const T* x = ctx.input(0).data<T>();
  const U* y = ctx.input(1).data<U>();
  R* z = pairs.out->data<R>();
  const int64_t step_x = pairs.step_x(), step_y = pairs.step_y();
  ForPairRows(pairs.bc, [&](int64_t at_x, int64_t at_y, int64_t at_z, int64_t n) {
    const T* p = x + at_x;
    const U* q = y + at_y;
    for (int64_t i = 0; i < n; ++i) {
      z[at_z + i] = static_cast<R>(fn(int32_t{p[i * step_x]}, int32_t{q[i * step_y]}));
    }
  });
  return OkStatus();
}

// fn(p, q, n, z) of blocks of pairs: p and q are the elements less their zero points, shifted to
// the left, and may be written; z takes n results. T: int8_t or int16_t.
template <typename T, typename F>
Status ForPairBlocks(OpContext& ctx, int32_t zero_a, int32_t zero_b, int left, F fn) {
  ASSIGN_OR_RETURN(const PairsOfInputs pairs, AllocatePairs(ctx));
  if (pairs.out->num_elements() == 0) return OkStatus();
  const T *x = ctx.input(0).data<T>(), *y = ctx.input(1).data<T>();
  T* z = pairs.out->data<T>();
  const int64_t step_x = pairs.step_x(), step_y = pairs.step_y();
  const auto load = [left](const T* from, int64_t step, int32_t zero, int32_t* to, int64_t n) {
    if constexpr (sizeof(T) == 1) {
      IsaFixed().from_int8(from, step, zero, left, to, n);
    } else {
      IsaFixed().from_int16(from, step, zero, left, to, n);
    }
  };
  ForPairRows(pairs.bc, [&](int64_t at_x, int64_t at_y, int64_t at_z, int64_t n) {
    constexpr int64_t kBlock = 512;
    int32_t p[kBlock], q[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      load(x + at_x + i * step_x, step_x, zero_a, p, count);
      load(y + at_y + i * step_y, step_y, zero_b, q, count);
      fn(p, q, count, z + at_z + i);
    }
  });
  return OkStatus();
}

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_PAIRS_H_
