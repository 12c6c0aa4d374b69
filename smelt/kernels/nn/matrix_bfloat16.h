// Convolutions and products of bfloat16 by products of matrices (isa/matrix_tiles.h).
#ifndef SMELT_KERNELS_NN_MATRIX_BFLOAT16_H_
#define SMELT_KERNELS_NN_MATRIX_BFLOAT16_H_

#include <memory>
#include <span>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/common/constant_forms.h"
#include "smelt/kernels/nn/matmul_reference.h"
#include "smelt/kernels/nn/matrix_rows.h"

namespace smelt::nn {

// What a node keeps for it: weights as the loops read them. Thread safe.
class MatrixBfloat16 {
 public:
  // Is this the way for the layer on this processor?
  static bool Suits(const ConvProblem& p);
  static bool Suits(const MatMulProblem& p);

  // The layer and `fused` as a bound kernel; as TiledConv::Bind. nullptr where what follows is more
  // than a bias, a sum and a clamp. REQUIRES: Suits.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const ConvProblem& p, const Tensor& filter,
                                              std::span<const float> factors, const float* bias,
                                              int addend, const FusedOps& fused);
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const MatMulProblem& p, const Tensor& matrix,
                                              const float* bias, int addend, const FusedOps& fused);

 private:
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const Int8Window& w, const Tensor& weights,
                                              bool transposed, std::span<const float> factors,
                                              const float* bias, int addend, const FusedOps& fused);

  ConstantForms<int64_t> packed_;  // by the number of a row's segments
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_MATRIX_BFLOAT16_H_
