// Matrices of bfloat16 as NarrowTile reads them: panels of columns, pairs of rows side by side.
#ifndef SMELT_KERNELS_NN_NARROW_PANELS_H_
#define SMELT_KERNELS_NN_NARROW_PANELS_H_

#include <cstdint>
#include <span>

#include "smelt/kernels/isa/tile_bfloat16.h"
#include "smelt/tensor/tensor.h"

namespace smelt::nn {

// Columns in panels of at most so many vectors, as even as can be. Each panel is [pairs of rows,
// its vectors, lanes, 2], one behind the other.
struct NarrowPanels {
  explicit NarrowPanels(int64_t columns, int64_t most_vectors = kNarrowTileVecs)
      : columns(columns),
        vectors((columns + kNarrowTileLanes - 1) / kNarrowTileLanes),
        count((vectors + most_vectors - 1) / most_vectors) {}
  struct Panel {
    int64_t column, behind;  // its first, and the first behind its vectors, beyond the last or not
    int vectors;
    uint8_t last;  // NarrowTile::last
  };
  // 0 <= i < count.
  Panel At(int64_t i) const {
    const int64_t first = vectors * i / count, end = vectors * (i + 1) / count;
    const int64_t behind = end * kNarrowTileLanes;
    const int64_t missing = behind > columns ? behind - columns : 0;
    return {first * kNarrowTileLanes, behind, static_cast<int>(end - first),
            static_cast<uint8_t>(0xffu >> missing / 2)};
  }
  // Elements of all panels of a matrix of so many pairs of rows.
  int64_t Elements(int64_t pairs) const { return vectors * kNarrowTileLanes * 2 * pairs; }

  int64_t columns, vectors, count;
};

// Bits of bfloat16, [rows, columns of the panels], whose rows lie `step` elements apart. Behind the
// last column, and behind the last row up to so many pairs, are zeros.
void PackPairs(const uint16_t* x, int64_t step, int64_t rows, int64_t pairs,
               const NarrowPanels& panels, uint16_t* packed);
// The same of [columns, rows]: columns lie `step` apart.
void PackPairsTurned(const uint16_t* x, int64_t step, int64_t rows, int64_t pairs,
                     const NarrowPanels& panels, uint16_t* packed);

// A matrix of bfloat16, whose columns are the last dimension's, column c times factors[c]; itself
// where there are no factors.
StatusOr<Tensor> ScaledColumns(const Tensor& matrix, std::span<const float> factors);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_NARROW_PANELS_H_
