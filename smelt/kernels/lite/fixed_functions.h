// Sigmoid, tanh and inverse roots of integers that stand for fixed point, to the bit as TensorFlow
// Lite's integer recurrences compute them.
#ifndef SMELT_KERNELS_LITE_FIXED_FUNCTIONS_H_
#define SMELT_KERNELS_LITE_FIXED_FUNCTIONS_H_

#include <array>
#include <cstdint>

#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {

// Of every number of 16 bits, by its bits. Results have 15 bits behind the point.
using FixedTable = std::array<int16_t, 65536>;
inline int16_t At(const FixedTable& table, int16_t x) { return table[static_cast<uint16_t>(x)]; }

// Of numbers with 12 bits behind the point.
const FixedTable& SigmoidTable();
// Of numbers with `integer_bits` before the point, beside the sign. REQUIRES: 0 <= integer_bits <=
// kMostTanhBits.
inline constexpr int kMostTanhBits = 6;
const FixedTable& TanhTable(int integer_bits);

// Numbers of 16 bits, of which some stand behind the point.
// With i and k bits before it, the product has i + k; halves are rounded away from zero.
inline int16_t FixedProduct(int16_t a, int16_t b) {
  constexpr int16_t kLeast = std::numeric_limits<int16_t>::min();
  if (a == kLeast && b == kLeast) return std::numeric_limits<int16_t>::max();
  const int32_t ab = int32_t{a} * b;
  return static_cast<int16_t>((ab + (ab >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15));
}
// x * 2^by; what is too large saturates.
inline int16_t FixedRaised(int16_t x, int by) {
  const int32_t most = (1 << (15 - by)) - 1;
  if (x > most) return std::numeric_limits<int16_t>::max();
  if (x < -most) return std::numeric_limits<int16_t>::min();
  return static_cast<int16_t>(x * (1 << by));
}
inline int16_t FixedLowered(int16_t x, int by) {
  return static_cast<int16_t>(DividedByPower(x, by));
}

// 1 / sqrt(x), of an integer.
Factor InverseRoot(int32_t x);

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_FIXED_FUNCTIONS_H_
