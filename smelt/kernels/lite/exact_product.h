// Products of matrices of small integers, by floating point: sums below 2^24 are exact in float,
// so that as many products as stay below are taken at a time.
#ifndef SMELT_KERNELS_LITE_EXACT_PRODUCT_H_
#define SMELT_KERNELS_LITE_EXACT_PRODUCT_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/onednn/float_matmul.h"

namespace smelt::lite {

// Rows of numbers of 8 bits less their zero points, as columns of the right operand. Thread safe.
class ExactProduct {
 public:
  // Writes elements [from, to) of row `row` of the left operand, each within [-255, 255].
  using FillRow = absl::FunctionRef<void(int64_t row, int64_t from, int64_t to, float* out)>;

  // sums[m, n] = rows * weights^T, where weights are [n, k] of int8 (or int4) or uint8 and row i of
  // them has the zero point zeros[i], or zeros[0]. What is made of `constant` weights is kept while
  // calls bring the same tensor; others may lie where those of another call did. REQUIRES: zero
  // points are within the type's range; k < 2^23.
  Status Run(const Tensor& weights, bool constant, int64_t n, int64_t k,
             const std::vector<int32_t>& zeros, int64_t m, FillRow fill, int32_t* sums,
             Allocator* allocator);

 private:
  struct Block {
    int64_t from = 0, to = 0;
    Tensor b;  // [to - from, n]
    onednn::FloatMatMul product;
  };
  struct Packed {
    Tensor weights;
    std::vector<std::unique_ptr<Block>> blocks;
  };
  StatusOr<std::shared_ptr<Packed>> PackedOf(const Tensor& weights, bool constant, int64_t n,
                                             int64_t k, const std::vector<int32_t>& zeros);

  absl::Mutex mutex_;
  std::shared_ptr<Packed> packed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_EXACT_PRODUCT_H_
