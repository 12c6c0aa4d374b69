// Matrix products of float, half and bfloat16 through oneDNN or, the small ones, own loops.
#ifndef SMELT_KERNELS_ONEDNN_FLOAT_MATMUL_H_
#define SMELT_KERNELS_ONEDNN_FLOAT_MATMUL_H_

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/nn/matmul_reference.h"
#include "smelt/kernels/nn/matrix_bfloat16.h"
#include "smelt/kernels/nn/tiled_product.h"
#include "smelt/kernels/onednn/keep_nan.h"
#include "smelt/kernels/onednn/narrow_layer.h"

namespace smelt::onednn {

// One per node. Thread safe.
class FloatMatMul {
 public:
  // out = fused(a * b). Tensors are of the problem's shapes, out is allocated and `args` are
  // checked. a, b, args and out are float; or out is half or bfloat16, the others any of the three,
  // and then `out` gets another buffer. `constant_b`: b holds the same values whenever it is the
  // same buffer.
  Status Run(const nn::MatMulProblem& p, const Tensor& a, const Tensor& b, bool constant_b,
             const FusedOps& fused, nn::FusedArgs args, Tensor* out, Allocator* allocator);
  // The same for runs on these shapes, none empty, of type float, or of bfloat16 where the
  // processor multiplies it; the node's inputs are a, b, then the arguments, which are checked.
  // nullptr where steps need more than one pass, or an argument would have to be converted on each
  // run.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const nn::MatMulProblem& p,
                                              const BindContext& context, const FusedOps& fused);

 private:
  // In the type of a, b and out: float, or bfloat16 when NarrowLayer tries it, which is
  // UNIMPLEMENTED where the library has no code.
  Status RunInType(const nn::MatMulProblem& p, const LayerCall& call);
  // nullptr: the library has no code.
  StatusOr<Plan> PlanOf(const nn::MatMulProblem& p, const Shape& a, const Shape& b, Dtype dtype,
                        bool constant_b, const FusedOps& fused);

  PlanCache plans_;
  nn::TiledProduct tiled_;
  nn::MatrixBfloat16 matrices_;
  NarrowLayer narrow_;
  ConstantIsModest modest_b_;
};

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_FLOAT_MATMUL_H_
