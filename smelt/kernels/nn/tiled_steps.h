// What follows a convolution, as loops of our own do it to a tile of the result.
#ifndef SMELT_KERNELS_NN_TILED_STEPS_H_
#define SMELT_KERNELS_NN_TILED_STEPS_H_

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/isa/isa.h"

namespace smelt::nn {

struct TiledSteps {
  bool has_bias = false;  // comes first; the caller sees to it
  bool adds = false;      // a tensor of the result's shape, in front of what follows
  // To [low, high], where NaN stays.
  bool clamps = false;
  float low = 0, high = 0;
  IsaUnaryFn act = nullptr;  // nullptr: none
  float alpha = 0;
};

// False where the steps are others than a bias, a sum and an activation, or `bias`, the constants
// of the first, is nullptr.
bool TiledStepsOf(const FusedOps& fused, const float* bias, TiledSteps* out);
// The same where the activation is a clamp or none, and what is added is input `addend`: not -1.
bool ClampingStepsOf(const FusedOps& fused, const float* bias, int addend, TiledSteps* out);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_TILED_STEPS_H_
