// Float and bfloat16 matrix products through oneDNN or, the small ones, own loops.
#ifndef SMELT_KERNELS_ONEDNN_FLOAT_MATMUL_H_
#define SMELT_KERNELS_ONEDNN_FLOAT_MATMUL_H_

#include "smelt/kernels/nn/fused.h"
#include "smelt/kernels/nn/matmul_reference.h"
#include "smelt/kernels/onednn/plan_cache.h"

namespace smelt::onednn {

// Is there enough to do for bfloat16 to be faster than float, conversions included?
bool WorthBfloat16(const nn::MatMulProblem& p);

// One per node. Thread safe.
class FloatMatMul {
 public:
  // out = fused(a * b). Tensors are of the problem's shapes, out is allocated and `args` are
  // checked. a, b and out are float; or all bfloat16, with `args` as MakeFusedPostOps wants them,
  // and then UNIMPLEMENTED where the library has no code. `constant_b`: b holds the same values
  // whenever it is the same buffer.
  Status Run(const nn::MatMulProblem& p, const Tensor& a, const Tensor& b, bool constant_b,
             const nn::FusedOps& fused, nn::FusedArgs args, Tensor* out, Allocator* allocator);

 private:
  PlanCache plans_;
};

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_FLOAT_MATMUL_H_
