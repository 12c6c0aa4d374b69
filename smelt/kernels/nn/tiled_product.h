// Products of floats and constant weights in tiles of our own (ConvTile), with what follows done
// while a tile is in registers or in the nearest cache.
#ifndef SMELT_KERNELS_NN_TILED_PRODUCT_H_
#define SMELT_KERNELS_NN_TILED_PRODUCT_H_

#include <memory>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/nn/matmul_reference.h"
#include "smelt/kernels/nn/tiled_panels.h"

namespace smelt::nn {

// What a node keeps for its tiled products: weights as the tiles read them. Thread safe.
class TiledProduct {
 public:
  // Are tiles at least as fast as the library? By sizes alone.
  static bool Wants(const MatMulProblem& p);
  // The product and `fused` as a bound kernel. `weights`: the constant second matrix, the same on
  // each call. `bias`: what the first step adds where that is a bias; nullptr where it is no
  // constant. `addend`: the node's input that a sum adds. nullptr where tiles do not do it all: a
  // bias, a sum and an activation. REQUIRES: Wants(p).
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const MatMulProblem& p, const Tensor& weights,
                                              const float* bias, int addend, const FusedOps& fused);

 private:
  const std::shared_ptr<TiledForms> packed_ = std::make_shared<TiledForms>();
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_TILED_PRODUCT_H_
