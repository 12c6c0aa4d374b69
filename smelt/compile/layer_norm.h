// Layer normalizations that are spelled out.
#ifndef SMELT_COMPILE_LAYER_NORM_H_
#define SMELT_COMPILE_LAYER_NORM_H_

#include <optional>

#include "smelt/compile/readers.h"
#include "smelt/compile/reasons.h"

namespace smelt {

// (x - mean) * rsqrt(variance + epsilon) * scale + offset along the last dimension of x.
struct SpelledLayerNorm {
  int x = -1, scale = -1, offset = -1;  // values; -1, where `affine` or `of_squares`: there is none
  float epsilon = 0;
  // x * factor + (offset - mean * factor), with the same roundings; factor is rsqrt() * scale.
  bool affine = false;
  // x * rsqrt(mean of squares + epsilon) * scale: nothing is subtracted or added.
  bool of_squares = false;
  // Of bfloat16, whose moments are computed in float: mean and factor are rounded, and used so.
  bool narrow = false;
  std::vector<size_t> actions;  // all, from the first to the last sum
};

// The one that begins with action `first`, the mean, the squares without one, or where x is
// bfloat16 the cast that makes it float, where nobody else reads what is in between; the products
// may stand in any order. `readers` are the plan's. Where it is none though squares of differences
// from a mean, or their mean's root, follow, `reasons` say why.
std::optional<SpelledLayerNorm> FindLayerNorm(const Plan& plan, size_t first,
                                              const PlanReaders& readers,
                                              Reasons* reasons = nullptr);

}  // namespace smelt

#endif  // SMELT_COMPILE_LAYER_NORM_H_
