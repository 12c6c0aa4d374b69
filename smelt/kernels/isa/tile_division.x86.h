// How the registers of AMX are divided. For the sources of this folder that use them.
#ifndef SMELT_KERNELS_ISA_TILE_DIVISION_X86_H_
#define SMELT_KERNELS_ISA_TILE_DIVISION_X86_H_

#include <cstdint>

namespace smelt {

constexpr int kMatrixTileSide = 16, kMatrixTileBytes = 64;

// As the processor reads it.
struct alignas(64) TileDivision {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileDivision) == 64);

// Eight registers of 16 rows of 64 bytes: 0 to 3 for sums, 4 and 5 for rows, 6 and 7 for weights. A
// constant, as compilers do not know that all of it is
// read.
inline constexpr TileDivision kMatrixDivision = {
    .bytes = {kMatrixTileBytes, kMatrixTileBytes, kMatrixTileBytes, kMatrixTileBytes,
              kMatrixTileBytes, kMatrixTileBytes, kMatrixTileBytes, kMatrixTileBytes},
    .rows = {kMatrixTileSide, kMatrixTileSide, kMatrixTileSide, kMatrixTileSide, kMatrixTileSide,
             kMatrixTileSide, kMatrixTileSide, kMatrixTileSide}};

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_TILE_DIVISION_X86_H_
