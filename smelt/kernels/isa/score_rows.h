// Softmax of short rows of attention's scores, each of which stays in registers. Thread safe.
#ifndef SMELT_KERNELS_ISA_SCORE_ROWS_H_
#define SMELT_KERNELS_ISA_SCORE_ROWS_H_

#include <cstdint>

namespace smelt {

// A number for each of a row's, or the same for all; nullptr: zeros.
struct ScoreMask {
  const float* numbers = nullptr;
  int64_t row = 0;     // from a row's to the next row's
  int64_t column = 0;  // from a number to the next: 0 or 1
};

struct ScoreRows {
  float* x = nullptr;
  // Floats from a row to the next: whole vectors, whatever stands behind the n-th of a row, which
  // is the function's, too.
  int64_t step = 0;
  int64_t rows = 0, n = 0;
  float scale = 1;
  ScoreMask masks[2];
};

struct ScoreLoops {
  int64_t lanes;  // floats of a vector
  int64_t most;   // numbers of a row
  // x = softmax(x * scale + masks[0] + masks[1]) of each row. All of a row is NaN where a sum is.
  void (*softmax)(const ScoreRows& rows);
};

// Those of the set that Isa() chose.
const ScoreLoops& IsaScores();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_SCORE_ROWS_H_
