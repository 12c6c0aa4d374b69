// Products of matrices by AMX: registers of 16 rows of 64 bytes, four of them the sums of 32 rows
// and 32 columns.
#include <algorithm>
#include <array>

#include "smelt/kernels/isa/exact_int8.x86.h"
#include "smelt/kernels/isa/tile_division.x86.h"

#define SMELT_AMX \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,amx-tile,amx-int8")))
#define SMELT_AMX_INLINE SMELT_AMX __attribute__((always_inline)) inline

namespace smelt {
namespace {

constexpr int kTileSide = kMatrixTileSide, kTileBytes = kMatrixTileBytes,
              kMatrixRows = 2 * kTileSide, kMatrixPanel = 2 * kTileSide;
constexpr int64_t kTileGroup = 4, kTileGroups = kTileBytes / kTileGroup;
constexpr int64_t kTileWeightStep = kMatrixPanel * kTileGroup;  // from group to group

SMELT_AMX void BeginMatrices() { _tile_loadconfig(&kMatrixDivision); }
SMELT_AMX void EndMatrices() { _tile_release(); }

// The compiler knows nothing of what the registers read and write.
SMELT_AMX_INLINE void TileFence() { asm volatile("" : : : "memory"); }

// 16 rows where they lie, or one after another in `copy`.
struct TileRows {
  std::array<const uint8_t*, kTileSide> at;
  int64_t step = 0;
  bool even = true;  // is each `step` from the one before?
  alignas(kTileBytes) uint8_t copy[2][kTileSide][kTileBytes];

  // Of rows [from, from + 16), behind whose last one it is read again.
  void Set(const uint8_t* const* rows, int from, int num_rows) {
    for (int i = 0; i < kTileSide; ++i) {
      at[static_cast<size_t>(i)] = rows[std::min(from + i, num_rows - 1)];
    }
    step = at[1] - at[0];
    for (size_t i = 2; i < kTileSide; ++i) even &= at[i] - at[i - 1] == step;
  }
  // Where 64 bytes of each, from `offset` on, may be loaded from by steps of load_step().
  SMELT_AMX_INLINE const uint8_t* Ready(int64_t offset, int turn) {
    if (even) return at[0] + offset;
    for (int i = 0; i < kTileSide; ++i) {
      _mm512_store_si512(copy[turn][i], _mm512_loadu_si512(at[static_cast<size_t>(i)] + offset));
    }
    return copy[turn][0];
  }
  int64_t load_step() const { return even ? step : kTileBytes; }
};

template <bool kTwoRows, bool kTwoColumns>
SMELT_AMX void MultiplyMatrices(const ExactInt8Tile& tile, TileRows& first, TileRows& second,
                                int32_t (&sums)[kMatrixRows][kMatrixPanel]) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const int8_t* w = tile.weights;
  int turn = 0;
  for (int64_t s = 0; s < tile.num_segments; ++s) {
    for (int64_t g = 0; g < tile.groups;
         g += kTileGroups, w += kTileGroups * kTileWeightStep, turn ^= 1) {
      const int64_t offset = tile.segments[s] + g * kTileGroup;
      const uint8_t* x = first.Ready(offset, turn);
      const uint8_t* z = kTwoRows ? second.Ready(offset, turn) : nullptr;
      TileFence();
      _tile_loadd(4, x, first.load_step());
      _tile_loadd(6, w, kTileWeightStep);
      _tile_dpbusd(0, 4, 6);
      if (kTwoColumns) {
        _tile_loadd(7, w + kTileBytes, kTileWeightStep);
        _tile_dpbusd(1, 4, 7);
      }
      if (kTwoRows) {
        _tile_loadd(5, z, second.load_step());
        _tile_dpbusd(2, 5, 6);
        if (kTwoColumns) _tile_dpbusd(3, 5, 7);
      }
    }
  }
  _tile_stored(0, sums, sizeof(sums[0]));
  if (kTwoColumns) _tile_stored(1, sums[0] + kTileSide, sizeof(sums[0]));
  if (kTwoRows) _tile_stored(2, sums[kTileSide], sizeof(sums[0]));
  if (kTwoRows && kTwoColumns) _tile_stored(3, sums[kTileSide] + kTileSide, sizeof(sums[0]));
  TileFence();
}

SMELT_AMX void MatrixTile(const ExactInt8Tile& tile, int rows) {
  alignas(kTileBytes) int32_t sums[kMatrixRows][kMatrixPanel];
  TileRows first, second;
  first.Set(tile.byte_rows, 0, rows);
  const bool two = rows > kTileSide, wide = tile.columns > kTileSide;
  if (two) second.Set(tile.byte_rows, kTileSide, rows);
  if (two) {
    wide ? MultiplyMatrices<true, true>(tile, first, second, sums)
         : MultiplyMatrices<true, false>(tile, first, second, sums);
  } else {
    wide ? MultiplyMatrices<false, true>(tile, first, second, sums)
         : MultiplyMatrices<false, false>(tile, first, second, sums);
  }
  const __m512i start0 = _mm512_loadu_si512(tile.start);
  const __m512i start1 = _mm512_loadu_si512(tile.start + kTileSide);
  const auto sum = [&](int p, int v) SMELT_AMX {
    return _mm512_add_epi32(_mm512_load_si512(sums[p] + v * kTileSide), v == 0 ? start0 : start1);
  };
  if (tile.sums != nullptr) {
    for (int p = 0; p < rows; ++p) {
      int32_t* to = tile.sums + p * kMatrixPanel;
      _mm512_storeu_si512(to, sum(p, 0));
      if (wide) _mm512_storeu_si512(to + kTileSide, sum(p, 1));
    }
    return;
  }
  const Finish32 finish(tile.scales, tile.columns);
  // Columns that no register holds are not written.
  const int half = wide ? 1 : 0;
  for (int p = 0; p < rows; p += 2) {
    const int q = std::min(p + 1, rows - 1);
    finish.Store(sum(p, 0), sum(p, half), tile.y + p * tile.y_step, sum(q, 0), sum(q, half),
                 tile.y + q * tile.y_step);
  }
}

}  // namespace

void FillExactInt8Matrices(ExactInt8Loops& t) {
  t.matrix_rows = kMatrixRows;
  t.matrix_groups = kTileGroups;
  t.matrix_tile = MatrixTile;
  t.begin_matrices = BeginMatrices;
  t.end_matrices = EndMatrices;
}

}  // namespace smelt
