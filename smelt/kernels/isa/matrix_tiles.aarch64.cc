#include "smelt/kernels/isa/matrix_tiles.h"

namespace smelt {

const MatrixTiles& IsaMatrixTiles() {
  static constexpr MatrixTiles kNone;
  return kNone;
}

}  // namespace smelt
