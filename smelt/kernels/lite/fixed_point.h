// Arithmetic of quantized operators of TensorFlow Lite: real = scale * (q - zero point), products
// with real factors as integer ones with a shift.
//
// Nodes are operators (graph/ops/lite_ops.txt) whose attributes say how their tensors are
// quantized: _scales, _zero_points and _quantized_dim of output 0, with "_1" behind them of output
// 1; _input_scales_0 and so on of input 0 (lite/lower).
#ifndef SMELT_KERNELS_LITE_FIXED_POINT_H_
#define SMELT_KERNELS_LITE_FIXED_POINT_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "smelt/kernels/isa/fixed.h"
#include "smelt/kernels/kernel.h"

namespace smelt::lite {

struct Affine {
  std::vector<float> scales;  // empty: not quantized
  std::vector<int64_t> zeros;
  int dim = 0;        // of several scales
  int64_t block = 0;  // elements of a row that share one of the scales, which lie row by row; 0: no
  bool quantized() const { return !scales.empty(); }
  float scale() const { return scales.empty() ? 1.0f : scales[0]; }
  int32_t zero() const { return zeros.empty() ? 0 : static_cast<int32_t>(zeros[0]); }
  bool operator==(const Affine&) const = default;
};
// Positive and finite? By its bits: denormal scales are there in threads that flush them, too.
inline bool IsScale(float s) {
  const auto bits = std::bit_cast<uint32_t>(s);
  return bits != 0 && bits < 0x7f800000;
}
Affine InputAffine(const Node& node, int input);
Affine OutputAffine(const Node& node, int output = 0);

// A factor as a 31-bit fraction and a power of two.
struct Factor {
  int32_t fraction = 0;
  int shift = 0;  // to the left
};
Factor FactorOf(double real);

// high 32 bits of 2ab, halves rounded up; saturates.
inline int32_t DoublingHigh(int32_t a, int32_t b) {
  if (a == b && a == std::numeric_limits<int32_t>::min()) {
    return std::numeric_limits<int32_t>::max();
  }
  return static_cast<int32_t>((int64_t{a} * b + (int64_t{1} << 30)) >> 31);
}
// x / 2^exponent, rounded half away from zero. REQUIRES: 0 <= exponent <= 31.
inline int32_t DividedByPower(int32_t x, int exponent) {
  const auto mask = static_cast<int32_t>((int64_t{1} << exponent) - 1);
  const int32_t rest = x & mask;
  const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + (rest > threshold ? 1 : 0);
}
// What wraps around, as in TensorFlow Lite.
inline int32_t WrappedSum(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
inline int32_t WrappedProduct(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}
inline int32_t ShiftedLeft(int32_t x, int by) {
  return static_cast<int32_t>(static_cast<uint32_t>(x) << by);
}
inline FixedFactor FixedOf(Factor f) {
  return {f.fraction, std::clamp(f.shift, 0, 31), std::clamp(-f.shift, 0, 31)};
}
// Rows of numbers by IsaFixed().times.
inline int32_t Times(int32_t x, Factor f) {
  const FixedFactor by = FixedOf(f);
  return DividedByPower(DoublingHigh(ShiftedLeft(x, by.left), by.fraction), by.right);
}
// Both halves rounded up, as products of matrices are without delegates.
inline int32_t TimesUp(int32_t x, Factor f) {
  const int left = std::clamp(f.shift, 0, 31), right = std::clamp(-f.shift, 0, 31);
  const int64_t high = (int64_t{ShiftedLeft(x, left)} * f.fraction + (int64_t{1} << 30)) >> 31;
  return static_cast<int32_t>((high + ((int64_t{1} << right) >> 1)) >> right);
}

// Of sums that are wider than 32 bits: the fraction has 15 bits, and halves are rounded up.
struct WideFactor {
  int64_t fraction = 0;
  int shift = 1;  // to the right, within [1, 62]; of factors beyond that every product is 0
  explicit WideFactor(Factor f) {
    if (15 - f.shift < 1 || 15 - f.shift > 62) return;
    fraction = f.fraction < 0x7fff0000 ? (int64_t{f.fraction} + (1 << 15)) >> 16 : 0x7fff;
    shift = 15 - f.shift;
  }
};
inline int32_t Times(int64_t x, Factor f) {
  const WideFactor w(f);
  const auto product =
      static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(w.fraction) +
                           (uint64_t{1} << (w.shift - 1)));
  return static_cast<int32_t>(product >> w.shift);
}

// The same with all 31 bits of the fraction.
inline int32_t TimesExactly(int64_t x, Factor f) {
  const int shift = 31 - f.shift;
  if (shift < 1 || shift > 77) return 0;
  const __int128 product = static_cast<__int128>(x) * f.fraction;
  return static_cast<int32_t>((product + (static_cast<__int128>(1) << (shift - 1))) >> shift);
}

// By one product of doubles, halves away from zero: of fully connected layers of int16 whose sums
// have 64 bits. What 32 bits do not hold becomes the least that they do, as on x86.
inline int32_t TimesInDouble(int64_t x, double by) {
  constexpr double kLimit = 2147483648.0;
  const double steps = std::round(static_cast<double>(x) * by);
  return steps >= -kLimit && steps < kLimit ? static_cast<int32_t>(steps)
                                            : std::numeric_limits<int32_t>::min();
}

// The whole range of the output's type, or what its activation leaves of it.
struct Range {
  int32_t low = 0, high = 0;
  int32_t Clamp(int32_t x) const { return std::min(std::max(x, low), high); }
  int32_t Clamp(int32_t steps, int32_t zero) const {
    return static_cast<int32_t>(std::clamp<int64_t>(int64_t{steps} + zero, low, high));
  }
};
Range RangeOf(Dtype type);

// What XNNPACK, which runs most layers of 8 bits by default, makes of a sum: one float product,
// halves to the even number. What is no number becomes the most.
class FloatSteps {
 public:
  FloatSteps() = default;
  FloatSteps(const Range& range, int32_t zero)
      : low_(static_cast<float>(int64_t{range.low} - zero)),
        high_(static_cast<float>(int64_t{range.high} - zero)),
        zero_(zero) {}
  int32_t operator()(int32_t sum, float scale) const { return Of(static_cast<float>(sum) * scale); }
  int32_t Of(float v) const {
    v = v < high_ ? v : high_;
    v = v > low_ ? v : low_;
    return static_cast<int32_t>(std::nearbyint(v)) + zero_;
  }

 private:
  float low_ = 0, high_ = 0;
  int32_t zero_ = 0;
};
// What the fused activation leaves of real numbers. REQUIRES: DeclineUnlessBounds has nothing to
// say.
struct RealRange {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};
RealRange ActivatedReals(const Node& node);
// For `decline`: activations that are no bounds.
std::string DeclineUnlessBounds(const Node& node);
// REQUIRES: as ActivatedReals.
Range ActivatedRange(const Node& node, const Affine& output);

// x without its fraction, within a million steps either way: that is beyond all ranges. What is no
// number, as of scales without bounds, is the most.
inline int32_t Truncated(float x) {
  constexpr float kMost = 1e6f;
  return x < kMost ? static_cast<int32_t>(std::max(x, -kMost)) : static_cast<int32_t>(kMost);
}

// x as an integer of the type, rounded half away from zero and clamped.
inline int32_t Quantized(float x, float scale, int32_t zero, const Range& range) {
  const float steps = std::round(x / scale);
  // Beyond int32, and not a number, as processors convert.
  if (!(std::abs(steps) < 2147483648.0f)) return steps > 0 ? range.high : range.low;
  const int64_t q = static_cast<int64_t>(steps) + zero;
  return static_cast<int32_t>(std::clamp<int64_t>(q, range.low, range.high));
}

// fn.operator()<T>() with the type of int8, uint8 or int16; false for others.
template <typename F>
bool VisitNarrow(Dtype type, F&& fn) {
  switch (type) {
    case Dtype::kInt8:
      fn.template operator()<int8_t>();
      return true;
    case Dtype::kUint8:
      fn.template operator()<uint8_t>();
      return true;
    case Dtype::kInt16:
      fn.template operator()<int16_t>();
      return true;
    default:
      return false;
  }
}

// For `decline`. The output, and inputs [0, inputs), are of one type that VisitNarrow takes, each
// with one scale.
std::string DeclineUnlessNarrow(const Node& node, int inputs);

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_FIXED_POINT_H_
