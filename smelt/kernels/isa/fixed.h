// Fixed-point arithmetic on rows of 32-bit integers, as TensorFlow Lite's own kernels do it.
// Compiled per instruction set as the loops of isa.h are.
#ifndef SMELT_KERNELS_ISA_FIXED_H_
#define SMELT_KERNELS_ISA_FIXED_H_

#include <cstdint>

namespace smelt {

// A factor of 31 bits and powers of two.
struct FixedFactor {
  int32_t fraction = 0;     // not negative
  int left = 0, right = 0;  // within [0, 31]
};

struct FixedLoops {
  // y = (x - zero) << left, which wraps around. x advances by `step`, 0 or 1.
  void (*from_int8)(const int8_t* x, int64_t step, int32_t zero, int left, int32_t* y,
                    int64_t n) = nullptr;
  void (*from_int16)(const int16_t* x, int64_t step, int32_t zero, int left, int32_t* y,
                     int64_t n) = nullptr;
  // x = the high half of 2 * (x << left) * fraction, halves rounded up, divided by 2^right, halves
  // rounded away from 0; what is shifted to the left wraps around.
  void (*times)(int32_t* x, int64_t n, FixedFactor factor) = nullptr;
  // y = clamp(x + zero, low, high). REQUIRES: low and high fit the type; |zero| <= 65536.
  void (*to_int8)(const int32_t* x, int32_t zero, int32_t low, int32_t high, int8_t* y,
                  int64_t n) = nullptr;
  void (*to_int16)(const int32_t* x, int32_t zero, int32_t low, int32_t high, int16_t* y,
                   int64_t n) = nullptr;
};

// Of the set that Isa() chose.
const FixedLoops& IsaFixed();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_FIXED_H_
