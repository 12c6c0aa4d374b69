// Products of matrices of int8 numbers that are both computed: one is laid out anew for each
// product and multiplied by the loops of isa/exact_int8.h, whose sums are exact.
#ifndef SMELT_KERNELS_LITE_INT8_MATMUL_H_
#define SMELT_KERNELS_LITE_INT8_MATMUL_H_

#include "absl/functional/function_ref.h"
#include "smelt/base/aligned_vector.h"
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/lite/fixed_point.h"
#include "smelt/kernels/nn/int8_image.h"

namespace smelt::lite {

// REQUIRES: zero points fit int8.
struct Int8MatmulNumbers {
  int32_t zero_a = 0, zero_b = 0, zero_out = 0;
  Range range;
  // Of sums: XNNPACK's scale, or TensorFlow Lite's own factor. `in_float`: zero_b is 0.
  bool in_float = false;
  float scale = 0;
  Factor factor;
};

// For matrices [rows, depth] and [depth, columns], of which each may lie transposed. Immutable, so
// thread safe.
class Int8Matmul {
 public:
  // REQUIRES: no size is 0.
  Int8Matmul(int64_t rows, int64_t depth, int64_t columns, bool transpose_a, bool transpose_b,
             const Int8MatmulNumbers& numbers);

  // y[rows, columns] of `count` products: of(i) tells where those of product i lie. By the calling
  // thread's team.
  struct Operands {
    const int8_t *a, *b;
    int8_t* y;
  };
  void Run(int64_t count, absl::FunctionRef<Operands(int64_t i)> of) const;

 private:
  void RunRows(const Operands& o, const int8_t* packed, int64_t from, int64_t to) const;
  // Rows [from, to) less their zero point, one `row_step_` behind the other.
  void FillRows(const int8_t* a, int64_t from, int64_t to, int16_t* rows) const;

  const ExactInt8Loops& loops_;
  const int64_t rows_, depth_, columns_;
  const bool transpose_a_, transpose_b_;
  const Int8MatmulNumbers numbers_;
  const nn::Int8Panels panels_;
  const int64_t row_step_;
  AlignedVector<float> scales_;  // of a panel
};

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_INT8_MATMUL_H_
