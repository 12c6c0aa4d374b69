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

// 1 / sqrt(x), of an integer.
Factor InverseRoot(int32_t x);

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_FIXED_FUNCTIONS_H_
