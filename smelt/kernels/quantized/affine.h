// Affine quantisation: real = (value - zero_point) * scale, for a whole tensor or along an axis.
#ifndef SMELT_KERNELS_QUANTIZED_AFFINE_H_
#define SMELT_KERNELS_QUANTIZED_AFFINE_H_

#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/kernels/kernel.h"

namespace smelt::quantized {

// Attributes <name>_axis, <name>_min_val and <name>_max_val of a node.
struct AffineAttrs {
  int64_t axis = -1;
  int32_t min = 0, max = 0;
};
AffineAttrs ReadAffineAttrs(const Node& node, absl::string_view name);

// Scales and zero points beside a tensor of `shape`.
Status CheckAffine(const Shape& shape, const Tensor& scales, const Tensor& zero_points,
                   int64_t axis);
bool AllPositive(const Tensor& scales);
// Of operations on (lhs, rhs, then scales and zero points of lhs, rhs and result).
Status CheckAllPositive(const OpContext& ctx);
// Are both scalars?
Status CheckOneForLhs(const Tensor& scales, const Tensor& zero_points);
// Are these matrices that multiply?
Status CheckDotOperands(const Shape& lhs, const Shape& rhs);

// Which scale belongs to element i of a tensor: (i / inner) % count.
struct AffineIndex {
  int64_t inner = 1, count = 1;
  AffineIndex(const Shape& shape, int64_t axis) {
    if (axis < 0) return;
    count = shape[static_cast<int>(axis)];
    inner = shape.Product(static_cast<int>(axis) + 1, shape.rank());
  }
  int64_t operator()(int64_t i) const { return count == 1 ? 0 : i / inner % count; }
};

// An int8 quantisation made for values between low and high as they come.
class DynamicRange {
 public:
  // REQUIRES: low <= 0 <= high.
  DynamicRange(float low, float high);
  float scale() const { return scale_; }
  // The step of v, less the zero point.
  int32_t operator()(float v) const {
    if (scale_ == 0) return 0;
    const float step = std::round(v * inverse_ + zero_point_);
    return static_cast<int32_t>(std::clamp(step, -128.0f, 127.0f) - zero_point_);
  }

 private:
  float scale_ = 0, inverse_ = 0, zero_point_ = 0;
};

// A positive factor as a 31-bit integer and a shift, as 8-bit inference multiplies.
class FixedMultiplier {
 public:
  explicit FixedMultiplier(double factor);
  // Rounds half up.
  int64_t operator()(int32_t x) const;

 private:
  int64_t multiplier_ = 0;
  int shift_ = 0;
};

// Steps of one quantisation in another's.
template <typename To>
To Requantized(int32_t value, const FixedMultiplier& m, int32_t zero_in, int32_t zero_out,
               const AffineAttrs& limits) {
  const auto centered =
      static_cast<int32_t>(static_cast<uint32_t>(value) - static_cast<uint32_t>(zero_in));
  // The product is held to 32 bits; what is added then may wrap around.
  const auto scaled = static_cast<int32_t>(std::clamp<int64_t>(
      m(centered), std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  const auto moved =
      static_cast<int32_t>(static_cast<uint32_t>(scaled) + static_cast<uint32_t>(zero_out));
  return static_cast<To>(std::max(std::min(moved, limits.max), limits.min));
}

}  // namespace smelt::quantized

#endif  // SMELT_KERNELS_QUANTIZED_AFFINE_H_
