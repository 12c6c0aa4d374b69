// Loops between float and int8 numbers, compiled per instruction set as those of isa.h are.
#ifndef SMELT_KERNELS_ISA_INT8_H_
#define SMELT_KERNELS_ISA_INT8_H_

#include <cstdint>

namespace smelt {

struct Int8Loops {
  // y = rint(clamp(x / scale + zero, low, high)); a NaN becomes low.
  void (*quantize)(const float* x, int8_t* y, int64_t n, float scale, float zero, float low,
                   float high);
  // y = (x - zero) * scale.
  void (*dequantize)(const int8_t* x, float* y, int64_t n, float scale, float zero);
  // The same where the numbers are 128 more, as uint8; zero is that of int8.
  void (*quantize_unsigned)(const float* x, uint8_t* y, int64_t n, float scale, float zero,
                            float low, float high);
  void (*dequantize_unsigned)(const uint8_t* x, float* y, int64_t n, float scale, float zero);
  // y[i] = (x[i] + bias[i]) * scale[i * scale_step] for one row of integer sums held as floats.
  // scale_step: 0 or 1.
  void (*scale_sums)(const float* x, const int32_t* bias, const float* scale, int64_t scale_step,
                     float* y, int64_t n);
};

// Of the set that Isa() chose.
const Int8Loops& IsaInt8();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_INT8_H_
