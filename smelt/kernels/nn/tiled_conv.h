// Convolutions of floats in tiles of our own (ConvTile), with what follows done while a tile is
// in registers or in the nearest cache.
#ifndef SMELT_KERNELS_NN_TILED_CONV_H_
#define SMELT_KERNELS_NN_TILED_CONV_H_

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/nn/tiled_panels.h"
#include "smelt/kernels/nn/tiled_steps.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

// Where the pixels of a result lie, in floats: the first, and how far apart neighbors of a
// dimension are; dimensions that are missing of three come first, and their step is not looked at.
struct PixelPlaces {
  int64_t first = 0, image = 0;
  std::array<int64_t, 3> step = {0, 0, 0};
};
// A convolution by tiles. `weights`: of [taps * in_depth, out_depth];
// `bias`: as PaddedBias; `addend`: the input that a sum adds, which lies as the result does.
// `places`: where the result is not one pixel behind the other. A window may begin behind the
// image's first pixel: then pad_before is negative. nullptr: the window has too many taps.
std::unique_ptr<BoundKernel> BindTiled(const ConvProblem& p, const TiledSteps& steps, int addend,
                                       std::unique_ptr<const TiledWeights> weights,
                                       std::vector<float> bias, const PixelPlaces* places);

// What a node keeps for its tiled convolutions: weights as the tiles read them. Thread safe.
class TiledConv {
 public:
  // The convolution and `fused` as a bound kernel. `filter`: its constant values, those of channel
  // c times factors[c] where there are factors, which are the same on each call. `bias`: what the
  // first step adds where that is a bias; nullptr where it is no constant. `addend`: the node's
  // input that a sum adds. nullptr where tiles do not do it all: one group, channels that lie
  // innermost; then a bias, a sum and an activation.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const ConvProblem& p, const Tensor& filter,
                                              std::span<const float> factors, const float* bias,
                                              int addend, const FusedOps& fused);
  // Would Bind give a kernel?
  static bool Takes(const ConvProblem& p, const float* bias, const FusedOps& fused);

 private:
  const std::shared_ptr<TiledForms> packed_ = std::make_shared<TiledForms>();
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_TILED_CONV_H_
