// The right factor of a product of bfloat16 that is computed anew in each run, laid out for the
// processor's products of matrices (isa/matrix_tiles.h) or dot products of pairs
// (isa/tile_bfloat16.h).
#ifndef SMELT_KERNELS_NN_NARROW_FACTOR_H_
#define SMELT_KERNELS_NN_NARROW_FACTOR_H_

#include <cstdint>

#include "smelt/kernels/nn/narrow_panels.h"

namespace smelt::nn {

// [depth, columns]. Immutable, so thread safe.
class NarrowFactor {
 public:
  static constexpr int64_t kMostRows = 64;

  // REQUIRES: Suits(depth).
  NarrowFactor(int64_t depth, int64_t columns);
  // Does this processor multiply rows of so many numbers where they lie?
  static bool Suits(int64_t depth);

  // Numbers of a row of the left factor that are read; those behind `depth` are to be zeros.
  int64_t row() const { return row_; }
  // Rows that are read for so many.
  int64_t RowsRead(int64_t rows) const;

  // Of packed ones.
  int64_t elements() const { return panels_.Elements(pairs_); }
  // Rows, or where `turned` columns, lie `step` apart.
  void Pack(const uint16_t* x, int64_t step, bool turned, uint16_t* packed) const;

  // y = x * packed, rounded once. At most kMostRows rows, which lie x_step and y_step apart.
  struct Rows {
    const uint16_t* x;
    int64_t x_step, count;
    uint16_t* y;
    int64_t y_step;
  };
  void Run(const uint16_t* packed, const Rows& rows) const;

 private:
  void RunMatrices(const uint16_t* packed, const Rows& rows) const;
  void RunPairs(const uint16_t* packed, const Rows& rows) const;

  const int64_t depth_, columns_;
  const bool matrices_;
  const NarrowPanels panels_;
  int64_t row_, pairs_;
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_NARROW_FACTOR_H_
