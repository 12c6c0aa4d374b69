// Products of matrices of bytes or of bfloat16 by registers of 16 rows of 64 bytes (AMX), with what
// follows them done to a block of sums while the next block is multiplied. Thread safe.
#ifndef SMELT_KERNELS_ISA_MATRIX_TILES_H_
#define SMELT_KERNELS_ISA_MATRIX_TILES_H_

#include <cstdint>

namespace smelt {

constexpr int64_t kMatrixSide = 16;       // rows and columns of a register
constexpr int64_t kMatrixRows = 64;       // of a block at most; as many may be read
constexpr int64_t kMatrixColumns = 32;    // that are finished together
constexpr int64_t kMatrixStepBytes = 64;  // of each row, that are multiplied at a time
// The weights of a register's columns for one such step: its rows are the columns' next four bytes
// each.
constexpr int64_t kMatrixStepWeights = kMatrixSide * kMatrixStepBytes;

// Rows times panels of kMatrixSide columns, all of them for some rows and then for the next: for
// each segment of a row, `steps` times 64 bytes.
struct MatrixRun {
  const void* x = nullptr;
  int64_t x_step = 0;                 // bytes from row to row
  int64_t rows = 0;                   // up to kMatrixRows, whole registers are read
  const int64_t* segments = nullptr;  // bytes from a row's begin
  int64_t num_segments = 0, steps = 0;
  const void* weights = nullptr;  // [panels, segments, steps, kMatrixStepWeights]
  // By row: where its first column is among the numbers of y and of the addend; less than 0: it is
  // not written.
  const int64_t* places = nullptr;
  int64_t columns = 0;  // that are written; there are panels for whole kMatrixColumns
  void* y = nullptr;
  // What the core's cache is asked for meanwhile.
  const void* ahead = nullptr;
  int64_t ahead_bytes = 0;
};

// y = clamp(rint(sums * scales + offset + addend * addend_scale) + zero, low, high), where the sums
// begin with `start`. int8 numbers are stored with the bits of a flip turned over: 0, or 0x80 for
// those that are stored as 128 more. REQUIRES: no result before the clamp is beyond int32.
struct Int8MatrixRun : MatrixRun {
  bool x_unsigned = false;
  const int32_t* start = nullptr;  // by column of the panels
  const float* scales = nullptr;   // as many
  float offset = 0;
  int16_t zero = 0;  // not 0: there is no addend; it fits int8
  int8_t low = -128, high = 127;
  uint8_t flip = 0, addend_flip = 0;
  const int8_t* addend = nullptr;  // overlaps nothing but may be y; nullptr: none
  float addend_scale = 0;
};

// y = clamp(sums + addend, low, high), rounded once, where the sums begin with `start`; NaN stays.
// Denormal numbers count as zeros.
struct Bfloat16MatrixRun : MatrixRun {
  const float* start = nullptr;      // by column of the panels
  const uint16_t* addend = nullptr;  // overlaps nothing but may be y; nullptr: none
  float low = 0, high = 0;
};

// Lines of windows, whose bytes come to lie one behind the other.
struct WindowLines {
  const void* from = nullptr;
  int64_t windows = 0, from_window = 0, to_window = 0;  // bytes from one to the next
  int64_t lines = 0, from_line = 0, bytes = 0;          // of a window
  void* to = nullptr;
  int64_t zeros = 0;  // bytes behind a window
};

struct MatrixTiles {
  // Around runs, in the same thread. Of each 64 bytes of a row the first `used` are read, a
  // multiple of 4.
  void (*begin)(int64_t used) = nullptr;
  void (*end)() = nullptr;
  void (*copy_windows)(const WindowLines& copy) = nullptr;
  // nullptr: the processor does not multiply such matrices.
  void (*run_int8)(const Int8MatrixRun& run) = nullptr;
  void (*run_bfloat16)(const Bfloat16MatrixRun& run) = nullptr;
};
const MatrixTiles& IsaMatrixTiles();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_MATRIX_TILES_H_
