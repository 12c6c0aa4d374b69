// Convolutions of float, half and bfloat16 through oneDNN. Activations keep the graph's plain
// layout; weights take the layout that the library likes best, once where they are constant.
#ifndef SMELT_KERNELS_ONEDNN_FLOAT_CONV_H_
#define SMELT_KERNELS_ONEDNN_FLOAT_CONV_H_

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/nn/matrix_bfloat16.h"
#include "smelt/kernels/nn/narrow_product.h"
#include "smelt/kernels/nn/streamed_conv.h"
#include "smelt/kernels/nn/tiled_conv.h"
#include "smelt/kernels/nn/window.h"
#include "smelt/kernels/nn/winograd_conv.h"
#include "smelt/kernels/onednn/keep_nan.h"
#include "smelt/kernels/onednn/narrow_layer.h"

namespace smelt::onednn {

// One per node. Thread safe.
class FloatConv {
 public:
  // The arguments of the fused steps, but for tensors that are added whole, are the same on each
  // call: a batch normalization is then folded into a constant filter and a bias. Call it before
  // the first Run.
  void SetConstantArgs(bool constant) { constant_args_ = constant; }

  // out = fused(x * w). Tensors are of the problem's shapes, out is allocated and not empty, `args`
  // are checked. x, w and out are of one type: float; half or bfloat16, with arguments of that type
  // or float, and then `out` gets another buffer. `constant_filter`: w holds the same values
  // whenever it is the same buffer.
  Status Run(const nn::ConvProblem& p, const Tensor& x, const Tensor& w, bool constant_filter,
             const FusedOps& fused_ops, nn::FusedArgs args, Tensor* out, Allocator* allocator);
  // The same for runs on these shapes, x, w and out of type float, or bfloat16 where the processor
  // multiplies it; the node's inputs are x, w, then the arguments. nullptr where w or what is
  // folded into it is no constant, or an argument would have to be converted on each run.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const nn::ConvProblem& p, const BindContext& context,
                                              const FusedOps& fused_ops);

 private:
  // What a normalization is folded into: a bias, and the filter's factors by channel.
  struct Folded {
    Tensor bias;
    std::vector<float> factors;
    int skipped = 0;  // leading arguments that `bias` replaces
  };
  using FoldedOnce = SmallCache<Folded, 1, 1>;
  // nullptr: there is nothing to fold.
  StatusOr<FoldedOnce::Ref> Fold(const FusedOps& ops, nn::FusedArgs args);
  // The steps with the folded bias in place of what it replaces.
  static FusedOps StepsAfter(const Folded& folded, const FusedOps& ops);

  bool constant_args_ = false;
  // In the type of x, w and out: float, or bfloat16 when NarrowLayer tries it, which is
  // UNIMPLEMENTED where the library has no code.
  Status RunInType(const nn::ConvProblem& p, const LayerCall& call);
  // nullptr: the library has no code.
  StatusOr<Plan> PlanOf(const nn::ConvProblem& p, const Shape& x, const Shape& w, Dtype dtype,
                        const FusedOps& ops);

  PlanCache plans_;
  NarrowLayer narrow_;
  nn::TiledConv tiled_;
  nn::StreamedConv streamed_;
  nn::WinogradConv winograd_;
  nn::NarrowProduct narrow_product_;
  nn::MatrixBfloat16 matrices_;
  ConstantIsModest modest_filter_;
  FloatCopies wide_filter_;
  FoldedOnce folded_;
};

// The convolution in plain loops, for float, double and int32; zeros where x is empty. REQUIRES:
// `out` is allocated and not empty.
void ConvPlain(const nn::ConvProblem& p, const Tensor& x, const Tensor& w, Tensor* out);

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_FLOAT_CONV_H_
