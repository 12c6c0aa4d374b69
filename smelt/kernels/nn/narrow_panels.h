// Matrices of bfloat16 as NarrowTile reads them: panels of columns, pairs of rows side by side.
#ifndef SMELT_KERNELS_NN_NARROW_PANELS_H_
#define SMELT_KERNELS_NN_NARROW_PANELS_H_

#include <cstdint>

#include "smelt/kernels/isa/tile_bfloat16.h"

namespace smelt::nn {

// Columns in panels of at most kNarrowTileVecs vectors, as even as can be. Each panel is
// [pairs of rows, its vectors, lanes, 2], one behind the other.
struct NarrowPanels {
  explicit NarrowPanels(int64_t columns)
      : vectors((columns + kNarrowTileLanes - 1) / kNarrowTileLanes),
        count((vectors + kNarrowTileVecs - 1) / kNarrowTileVecs) {}
  // Vector of panel i, which 0 <= i <= count.
  int64_t First(int64_t i) const { return vectors * i / count; }
  // Elements of all panels of a matrix of so many pairs of rows.
  int64_t Elements(int64_t pairs) const { return vectors * kNarrowTileLanes * 2 * pairs; }

  int64_t vectors, count;
};

// Bits of bfloat16, [rows, columns], whose rows lie `step` elements apart. Behind the last column,
// and behind the last row where there is an odd number of them, are zeros.
void PackPairs(const uint16_t* x, int64_t step, int64_t rows, int64_t columns, uint16_t* packed);
// The same of [columns, rows]: columns lie `step` apart.
void PackPairsTurned(const uint16_t* x, int64_t step, int64_t rows, int64_t columns,
                     uint16_t* packed);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_NARROW_PANELS_H_
