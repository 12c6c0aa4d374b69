// The library's Relu and Relu6 make 0 of NaN, where TensorFlow keeps it. A layer that ends in one
// is watched: only where what it reads is modest can there be no NaN in its sums.
#ifndef SMELT_KERNELS_ONEDNN_KEEP_NAN_H_
#define SMELT_KERNELS_ONEDNN_KEEP_NAN_H_

#include <memory>
#include <span>
#include <vector>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/common/run_instead.h"
#include "smelt/kernels/common/small_cache.h"
#include "smelt/kernels/nn/all_modest.h"
#include "smelt/kernels/nn/fused.h"

namespace smelt::onednn {

// Where the first Relu or Relu6 stands; steps.size(): there is none.
size_t FirstClamp(const FusedOps& ops);
// The steps before step `at`, and those from it on, with the same arguments.
FusedOps StepsBefore(const FusedOps& ops, size_t at);
FusedOps StepsFrom(const FusedOps& ops, size_t at);

// nn::AllModest of weights that hold the same values whenever they are the same buffer: they are
// looked at once. One per node. Thread safe.
class ConstantIsModest {
 public:
  bool operator()(const Tensor& w);

 private:
  struct Seen {
    Tensor w;
    bool modest;
  };
  SmallCache<Seen, 1, 1> seen_;
};

// How many of the steps of one run, from the first on, the library may do to a product of `x` and
// `w`, float or bfloat16, with these arguments: all, or those before a clamp that would make 0 of
// NaN. `factors`: what w's channels are multiplied by. `constant`: nullptr where w may differ
// between calls.
size_t StepsThatKeepNan(const FusedOps& ops, const Tensor& x, const Tensor& w,
                        ConstantIsModest* constant, std::span<const float> factors,
                        nn::FusedArgs args);

// What a watched layer reads that is no constant.
struct WatchedInput {
  int input;
  int64_t elements;
  Dtype dtype;  // float or bfloat16
};

// `layer` where all watched inputs are modest, else what `instead` makes, which is called by runs,
// any number at once.
std::unique_ptr<BoundKernel> WhileModest(std::unique_ptr<BoundKernel> layer,
                                         std::vector<WatchedInput> watched, MakeBound instead);

// `layer`, whose last step is `clamp`; where a watched input is not modest, what `unclamped` makes,
// which lacks that step, and the clamp itself of the `results` values of `dtype`, as what is
// watched. `unclamped` is called by runs, any number at once.
std::unique_ptr<BoundKernel> KeepNan(std::unique_ptr<BoundKernel> layer,
                                     std::vector<WatchedInput> watched, Activation clamp,
                                     int64_t results, Dtype dtype, MakeBound unclamped);

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_KEEP_NAN_H_
