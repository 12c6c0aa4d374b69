#include "smelt/kernels/nn/tiled_steps.h"

#include <limits>

#include "smelt/kernels/nn/isa_activation.h"

namespace smelt::nn {

bool TiledStepsOf(const FusedOps& fused, const float* bias, TiledSteps* out) {
  out->has_bias = !fused.empty() && fused.steps[0].kind == FusedStep::Kind::kBias;
  if (out->has_bias && bias == nullptr) return false;
  size_t i = out->has_bias ? 1 : 0;
  if (i < fused.steps.size() && fused.steps[i].kind == FusedStep::Kind::kAdd) {
    out->adds = true;
    ++i;
  }
  if (i < fused.steps.size() && fused.steps[i].kind == FusedStep::Kind::kActivation) {
    const UnaryF32 act = IsaActivation(fused.steps[i].activation);
    if (act == UnaryF32::kRelu || act == UnaryF32::kRelu6) {
      out->clamps = true;
      out->high = act == UnaryF32::kRelu ? std::numeric_limits<float>::infinity() : 6.0f;
    } else {
      out->act = Isa().unary[static_cast<int>(act)];
      out->alpha = fused.leaky_alpha;
    }
    ++i;
  }
  return i == fused.steps.size();
}

bool ClampingStepsOf(const FusedOps& fused, const float* bias, int addend, TiledSteps* out) {
  return TiledStepsOf(fused, bias, out) && out->act == nullptr && !(out->adds && addend < 0);
}

}  // namespace smelt::nn
