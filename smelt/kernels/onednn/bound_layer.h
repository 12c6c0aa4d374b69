// A layer of the library bound to its shapes: primitive, packed weights and constant arguments are
// at hand, and a run only says where the others lie.
#ifndef SMELT_KERNELS_ONEDNN_BOUND_LAYER_H_
#define SMELT_KERNELS_ONEDNN_BOUND_LAYER_H_

#include <memory>
#include <span>
#include <vector>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/nn/fused.h"
#include "smelt/kernels/onednn/plan_cache.h"

namespace smelt::onednn {

// Where an argument of the fused steps comes from.
struct LayerArgument {
  const void* constant = nullptr;
  int input = -1;  // of the node, where it is no constant
};

// Does nn::CheckFusedArgs accept `args`, the node's inputs after those of the layer itself?
bool ArgumentsFit(const FusedOps& fused, std::span<const BoundTensor> args, const Shape& output,
                  int depth_dim);

// The arguments of the steps, inputs of the node after the second, as MakeFusedPostOps wants them
// of a layer whose result is `dst`: constants of another type are converted once. False where a run
// would have to.
struct LayerArguments {
  std::vector<LayerArgument> args;  // by FusedStep::arg
  nn::WidenedArgs values;           // of constants; nullptr: no constant
  std::vector<Tensor> converted;
};
// The type of argument `arg` among them: what is added whole has the result's.
Dtype ArgumentType(const FusedOps& fused, size_t arg, Dtype dst);
StatusOr<bool> MakeLayerArguments(const FusedOps& fused, const BindContext& context, Dtype dst,
                                  LayerArguments* out);

// What tiles of our own (TiledConv, TiledProduct, TiledTranspose) take of the arguments.
struct TileOperands {
  const float* bias = nullptr;  // of the bias step, where it is constant
  int addend = -1;              // the node's input that a sum adds; -1: there is none
};
// REQUIRES: args are by FusedStep::arg, a constant bias is of floats.
TileOperands OperandsOfTiles(const FusedOps& ops, std::span<const LayerArgument> args);

// Node inputs are src, weights, then the arguments. `weights`: constant ones as the plan takes
// them; nullptr: the node's input is taken as it is. `keep` holds what the arguments point to.
// nullptr where a step needs more than a pointer (a batch normalization). REQUIRES: `plan` was made
// of MakeFusedPostOps(ops), args are by FusedStep::arg.
std::unique_ptr<BoundKernel> BindLayer(Plan plan, std::shared_ptr<const Tensor> weights,
                                       const FusedOps& ops, std::span<const LayerArgument> args,
                                       std::shared_ptr<const void> keep);

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_BOUND_LAYER_H_
