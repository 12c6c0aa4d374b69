// What becomes of 32-bit sums of int8 layers while they are in the nearest cache: scaled as floats,
// and made int8 again. Thread safe.
#ifndef SMELT_KERNELS_ISA_INT8_SUMS_H_
#define SMELT_KERNELS_ISA_INT8_SUMS_H_

#include <cstdint>

namespace smelt {

constexpr int64_t kInt8SumLanes = 16;

// A block of rows of `width` numbers, a multiple of kInt8SumLanes, of which the first `columns`
// are written. int8 numbers are stored with the bits of `flip` turned over: 0, or 0x80 for those
// that are stored as 128 more.
struct Int8SumBlock {
  int64_t rows = 0, width = 0, columns = 0;
  const float* scales = nullptr;  // by column, `width` of them
  // y = rint(clamp(v + zero, low, high)), a NaN as low.
  float zero = 0, low = -128, high = 127;
  uint8_t flip = 0;
  int8_t* y = nullptr;
  int64_t y_step = 0;  // from row to row
  // nullptr: none. Else v gets (addend - addend_zero) * addend_scale more.
  const int8_t* addend = nullptr;
  int64_t addend_step = 0;
  float addend_zero = 0, addend_scale = 1;
  uint8_t addend_flip = 0;
};

struct Int8SumLoops {
  // v = sums * scales.
  void (*to_int8)(const Int8SumBlock& block, const int32_t* sums) = nullptr;
  // v = x * scales.
  void (*floats_to_int8)(const Int8SumBlock& block, const float* x) = nullptr;
  // v = sums * scales, and all `width` of each row.
  void (*to_floats)(const Int8SumBlock& block, const int32_t* sums, float* v) = nullptr;
  // v += the block's addend, `columns` of each row.
  void (*add_int8)(const Int8SumBlock& block, float* v) = nullptr;
  // v += x, `columns` of each row, whose rows lie x_step apart.
  void (*add_floats)(const Int8SumBlock& block, const float* x, int64_t x_step, float* v) = nullptr;
};

// nullptr where the processor has no products of pairs of 16 bits (ExactInt8Loops::group == 2).
const Int8SumLoops* PairSumLoops();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_INT8_SUMS_H_
