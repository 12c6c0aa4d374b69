// Convolutions of float, half and bfloat16 through oneDNN. Activations keep the graph's plain
// layout; weights take the layout that the library likes best, once where they are constant.
#ifndef SMELT_KERNELS_ONEDNN_FLOAT_CONV_H_
#define SMELT_KERNELS_ONEDNN_FLOAT_CONV_H_

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/nn/window.h"
#include "smelt/kernels/onednn/narrow_layer.h"

namespace smelt::onednn {

// One per node. Thread safe.
class FloatConv {
 public:
  // The arguments of the fused steps are the same on each call: with a constant filter, a batch
  // normalisation goes into it and a bias.
  void SetConstantArgs(bool constant) { constant_args_ = constant; }

  // out = fused(x * w). Tensors are of the problem's shapes, out is allocated and not empty, `args`
  // are checked. x, w and out are of one type: float; half or bfloat16, with arguments of that type
  // or float, and then `out` gets another buffer. `constant_filter`: w holds the same values
  // whenever it is the same buffer.
  Status Run(const nn::ConvProblem& p, const Tensor& x, const Tensor& w, bool constant_filter,
             const FusedOps& fused_ops, nn::FusedArgs args, Tensor* out, Allocator* allocator);

 private:
  // Steps without the normalisation, their bias, and what the filter is multiplied by.
  struct Folded {
    FusedOps ops;
    Tensor bias;
    std::vector<float> factors;
    int skipped = 0;  // arguments that are no longer used
  };
  using FoldedOnce = SmallCache<Folded, 1, 1>;
  // nullptr: there is nothing to fold.
  StatusOr<FoldedOnce::Ref> Fold(const FusedOps& ops, nn::FusedArgs args);

  bool constant_args_ = false;
  // In the type of x, w and out: float, or bfloat16 as NarrowLayer tries it.
  Status RunInType(const nn::ConvProblem& p, const LayerCall& call);

  PlanCache plans_;
  NarrowLayer narrow_;
  FoldedOnce folded_;
};

// In plain loops, for float, double and int32. `out` is not empty.
void ConvPlain(const nn::ConvProblem& p, const Tensor& x, const Tensor& w, Tensor* out);

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_FLOAT_CONV_H_
