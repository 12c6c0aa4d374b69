// Layers of int8 numbers with int8 results, bit for bit as TensorFlow Lite computes them by default
// (XNNPACK): sums of 32 bits, times a float factor for each channel. Numbers of the input come as
// int16, less their zero point, so that all products are exact. Thread safe.
#ifndef SMELT_KERNELS_ISA_EXACT_INT8_H_
#define SMELT_KERNELS_ISA_EXACT_INT8_H_

#include <cstdint>

#include "smelt/kernels/isa/int8_sums.h"

namespace smelt {

// What becomes of a sum s of a column: y = clamp(rint(float(s) * scale) + zero, low, high), halves
// to the even one. REQUIRES: low and high fit int8; |zero| <= 65536. A product that is no number
// becomes high.
struct ExactInt8Scales {
  const float* scale = nullptr;  // by column
  int32_t zero = 0, low = -128, high = 127;
};

// What becomes of two numbers: y = clamp((offset + a times its factor + b times its factor) >>
// right, low - zero, high - zero) + zero. REQUIRES: no sum is beyond int32; right within [1, 31];
// low and high fit int8.
struct ExactInt8Sum {
  int32_t offset = 0, right = 1;
  int32_t zero = 0, low = -128, high = 127;
};

// Rows times a panel of columns. The numbers of a row lie in segments, each as long as the others.
struct ExactInt8Tile {
  const int16_t* const* rows = nullptr;       // where each begins
  const uint8_t* const* byte_rows = nullptr;  // in place of them, of byte_tile
  const int64_t* segments = nullptr;          // where each of them begins, from a row's begin on
  int64_t num_segments = 0;
  int64_t groups = 0;                     // of `group` numbers in each segment
  const int8_t* weights = nullptr;        // [segments, groups, panel, group]
  const int16_t* wide_weights = nullptr;  // in place of them, of wide_tile
  const int32_t* start = nullptr;         // what sums begin with, by column: `panel` of them
  ExactInt8Scales scales;                 // as many; zero fits int8
  int8_t* y = nullptr;
  int64_t y_step = 0;       // from row to row
  int64_t columns = 0;      // that are written, at most `panel`
  int32_t* sums = nullptr;  // where it is not: [rows, panel] sums are written, and no y
  // Of wide_tile, in the place of both: what becomes of the sums in floats; its rows and width do
  // not count.
  const Int8SumBlock* block = nullptr;
};

constexpr int64_t kExactDepthwiseBlock = 16;  // channels

// One block of channels of results in a row: sums over taps of the same channel.
struct ExactInt8Depthwise {
  const int16_t* x = nullptr;     // of the first result; 16 channels may be read
  const int64_t* taps = nullptr;  // where each is, in pairs
  int64_t pairs = 0;
  const int16_t* weights = nullptr;  // [pairs, block, 2]
  const int32_t* start = nullptr;    // as `scales`, in the order of depthwise_places; sums are not
  ExactInt8Scales scales;
  int64_t results = 0, x_step = 0, y_step = 0;
  int8_t* y = nullptr;
  int64_t channels = 0;     // that are written, at most a block
  int32_t* sums = nullptr;  // where it is not: [results, block] sums are written, and no y
  // Of depthwise_of_block, in the place of scales and y: what becomes of the sums in floats; its
  // rows and width do not count.
  const Int8SumBlock* block = nullptr;
};

// What becomes of sums of rows whose numbers were quantized each by its own scale: y = clamp((sum +
// weight_sum * times) * scale * column's scale + bias, low, high), where the sum wraps around, and
// the last product and sum are one operation where the processor can; a NaN stays.
struct ExactInt8Row {
  float scale = 1;
  int32_t times = 0;
};
struct ExactInt8Floats {
  const int32_t* weight_sums = nullptr;  // by column; nullptr: zeros
  const float *scales = nullptr, *bias = nullptr;
  float low = 0, high = 0;
  int64_t sums_step = 0;  // from row to row
  float* y = nullptr;
  int64_t y_step = 0, columns = 0;
};

// Float numbers x as whole steps s within [low, high]: x = scale * s, where s is a number of int8
// less the zero point.
struct ExactInt8Steps {
  float scale = 1, inverse = 0;
  float low = 0, high = 0;
};

struct ExactInt8Loops {
  int64_t panel = 0, group = 0;
  int rows = 0;  // the most of one tile
  void (*tile)(const ExactInt8Tile& tile, int rows) = nullptr;
  // The same of weights that are widened already, which pays for many rows; nullptr where there is
  // no such loop.
  void (*wide_tile)(const ExactInt8Tile& tile, int rows) = nullptr;
  // The same of numbers that are bytes, with its own group; nullptr where the processor multiplies
  // none.
  int64_t byte_group = 0;
  void (*byte_tile)(const ExactInt8Tile& tile, int rows) = nullptr;
  // The same of more rows, where the processor multiplies matrices of bytes; nullptr where it does
  // not. Between begin_matrices and end_matrices of the same thread. REQUIRES: `groups` is a
  // multiple of matrix_groups.
  void (*matrix_tile)(const ExactInt8Tile& tile, int rows) = nullptr;
  void (*begin_matrices)() = nullptr;
  void (*end_matrices)() = nullptr;
  int matrix_rows = 0;
  int64_t matrix_groups = 1;
  // y = x - zero.
  void (*widen)(const int8_t* x, int16_t* y, int64_t n, int32_t zero) = nullptr;
  // y = x + 128.
  void (*to_bytes)(const int8_t* x, uint8_t* y, int64_t n) = nullptr;
  const uint8_t* depthwise_places = nullptr;  // where each channel of a block stands
  void (*depthwise)(const ExactInt8Depthwise& run) = nullptr;
  // nullptr where there is no such loop.
  void (*depthwise_of_block)(const ExactInt8Depthwise& run) = nullptr;

  // wide += sums.
  void (*add_to_wide)(const int32_t* sums, int64_t* wide, int64_t n) = nullptr;
  // y = clamp(int32((sums + bias) * factors + half of 2^shifts) >> shifts), low, high), where all
  // wrap around. REQUIRES: shifts within [1, 62]; low and high fit int16.
  void (*wide_to_int16)(const int64_t* sums, const int64_t* bias, const int64_t* factors,
                        const int64_t* shifts, int32_t low, int32_t high, int16_t* y,
                        int64_t n) = nullptr;

  // Sums and products of int8 numbers, of which each advances by 0 or 1.
  struct Operand {
    const int8_t* x = nullptr;
    int64_t step = 1;
    int32_t zero = 0;   // of a product
    int32_t times = 0;  // of a sum
  };
  void (*add)(const Operand& a, const Operand& b, const ExactInt8Sum& sum, int8_t* y,
              int64_t n) = nullptr;
  // The scales of (a - zero) * (b - zero), all by the first.
  void (*multiply)(const Operand& a, const Operand& b, const ExactInt8Scales& scales, int8_t* y,
                   int64_t n) = nullptr;

  // y = max(y, x).
  void (*maximum)(const int8_t* x, int8_t* y, int64_t n) = nullptr;
  // sums += x.
  void (*accumulate)(const int8_t* x, int32_t* sums, int64_t n) = nullptr;
  // y = clamp(rint(x * scale) + zero, low, high), by the first scale; a NaN as high.
  void (*quantize)(const float* x, int8_t* y, int64_t n, const ExactInt8Scales& scales) = nullptr;

  // How XNNPACK's layers of "dynamic range" quantize each of `rows` rows of n numbers: by the range
  // of these and 0. Numbers that have no range stand for 0, and so do those that are none.
  void (*steps_of_rows)(const float* x, int64_t rows, int64_t n, ExactInt8Steps* steps) = nullptr;
  // Of layers whose input is float, and quantized on the way: y = clamp(rint(x * inverse), low,
  // high), a NaN as low.
  void (*steps_of)(const float* x, int16_t* y, int64_t n, float inverse, float low,
                   float high) = nullptr;
  // The same less `low`. REQUIRES: that is a byte.
  void (*bytes_of)(const float* x, uint8_t* y, int64_t n, float inverse, float low,
                   float high) = nullptr;
  // steps_of with halves rounded away from 0.
  void (*steps_away_of)(const float* x, int16_t* y, int64_t n, float inverse, float low,
                        float high) = nullptr;
  // Of each row of sums, as ExactInt8Floats says.
  void (*to_floats)(const int32_t* sums, const ExactInt8Row* rows, int64_t num_rows,
                    const ExactInt8Floats& floats) = nullptr;
  // y = clamp(sums * scale * scales + bias, low, high), rounded after each operation, as TensorFlow
  // Lite's depthwise kernel does: four columns at a time sums * scales * scale, those that are left
  // sums * scale * scales. A NaN stays.
  void (*to_float_by_four)(const int32_t* sums, float scale, const float* scales, const float* bias,
                           float low, float high, float* y, int64_t n) = nullptr;
};

// Of the set that Isa() chose.
const ExactInt8Loops& IsaExactInt8();

// What the processor's own intrinsics do better than the loops that are compiled for its set,
// written over `loops`; in exact_int8.x86.cc and exact_int8.aarch64.cc.
void FillOwnExactInt8(ExactInt8Loops& loops);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_EXACT_INT8_H_
