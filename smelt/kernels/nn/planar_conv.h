// Convolutions of floats with few channels of results, as the last layers of what makes images:
// vectors of channels would be mostly empty, so that vectors of pixels are multiplied.
#ifndef SMELT_KERNELS_NN_PLANAR_CONV_H_
#define SMELT_KERNELS_NN_PLANAR_CONV_H_

#include <memory>
#include <span>
#include <vector>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/nn/tiled_conv.h"
#include "smelt/kernels/nn/tiled_steps.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

class PlanarConv {
 public:
  // Is this the way for the problem on this processor? In two dimensions, channels innermost.
  static bool Suits(const ConvProblem& p);

  // As TiledConv::Bind; nullptr where the steps are others. REQUIRES: Suits; filter and factors are
  // finite where the image is padded, whose zeros are multiplied.
  static StatusOr<std::unique_ptr<BoundKernel>> Bind(const ConvProblem& p, const Tensor& filter,
                                                     std::span<const float> factors,
                                                     const float* bias, int addend,
                                                     const FusedOps& fused);
};

// `weights`: [rows, columns, depth, channels] of the window. `bias`: by channel; nullptr: zeros.
// `addend` and `places` are those of BindTiled. REQUIRES: Suits(p).
std::unique_ptr<BoundKernel> BindPlanar(const ConvProblem& p, const TiledSteps& steps, int addend,
                                        std::span<const float> weights, const float* bias,
                                        const PixelPlaces* places);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_PLANAR_CONV_H_
