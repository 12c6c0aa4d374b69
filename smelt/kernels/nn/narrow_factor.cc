#include "smelt/kernels/nn/narrow_factor.h"

#include <algorithm>
#include <array>
#include <limits>

#include "smelt/base/processor.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/matrix_tiles.h"
#include "smelt/kernels/isa/tile_bfloat16.h"

namespace smelt::nn {
namespace {

constexpr float kNoBound = std::numeric_limits<float>::infinity();
constexpr int64_t kPairsOfStep = kMatrixStepBytes / 4;
// Columns that matrices are multiplied by at a time, which begin with zeros.
constexpr int64_t kColumnsAtOnce = 512;
alignas(64) constexpr std::array<float, kColumnsAtOnce> kZeros = {};

bool HasMatrices() { return IsaMatrixTiles().run_bfloat16 != nullptr; }

int64_t WholeMultiple(int64_t n, int64_t of) { return (n + of - 1) / of * of; }

}  // namespace

bool NarrowFactor::Suits(int64_t depth) {
  if (HasMatrices()) return depth % 2 == 0 && (depth < 2 * kPairsOfStep || depth % 32 == 0);
  return depth % 2 == 0 && NarrowTileOf(1, 1) != nullptr && CpuHas(CpuFeature::kDotBfloat16) &&
         Isa().level == IsaLevel::kAvx512;
}

// Matrices: panels of one vector, of whole steps.
NarrowFactor::NarrowFactor(int64_t depth, int64_t columns)
    : depth_(depth),
      columns_(columns),
      matrices_(HasMatrices()),
      panels_(matrices_ ? WholeMultiple(columns, kMatrixColumns) : columns,
              matrices_ ? 1 : kNarrowTileVecs),
      row_(WholeMultiple(depth, 2)),
      pairs_(row_ / 2) {
  if (!matrices_) return;
  pairs_ = WholeMultiple(pairs_, kPairsOfStep);
  if (pairs_ > kPairsOfStep) row_ = 2 * pairs_;
}

int64_t NarrowFactor::RowsRead(int64_t rows) const {
  return matrices_ ? WholeMultiple(rows, kMatrixSide) : rows;
}

void NarrowFactor::Pack(const uint16_t* x, int64_t step, bool turned, uint16_t* packed) const {
  // Columns that are not there are those of no panel that is written.
  NarrowPanels panels = panels_;
  panels.columns = columns_;
  (turned ? PackPairsTurned : PackPairs)(x, step, depth_, pairs_, panels, packed);
}

void NarrowFactor::Run(const uint16_t* packed, const Rows& rows) const {
  matrices_ ? RunMatrices(packed, rows) : RunPairs(packed, rows);
}

void NarrowFactor::RunMatrices(const uint16_t* packed, const Rows& rows) const {
  std::array<int64_t, kMostRows> places;
  for (int64_t r = 0; r < rows.count; ++r) places[static_cast<size_t>(r)] = r * rows.y_step;
  constexpr int64_t kBegin = 0;
  Bfloat16MatrixRun run;
  run.x = rows.x;
  run.x_step = rows.x_step * int64_t{sizeof(uint16_t)};
  run.rows = rows.count;
  run.segments = &kBegin;
  run.num_segments = 1;
  run.steps = pairs_ / kPairsOfStep;
  run.places = places.data();
  run.start = kZeros.data();
  run.low = -kNoBound;
  run.high = kNoBound;
  const MatrixTiles& tiles = IsaMatrixTiles();
  tiles.begin(std::min(row_ * int64_t{sizeof(uint16_t)}, kMatrixStepBytes));
  for (int64_t c = 0; c < columns_; c += kColumnsAtOnce) {
    run.columns = std::min(kColumnsAtOnce, columns_ - c);
    run.weights = packed + c * pairs_ * 2;
    run.y = rows.y + c;
    tiles.run_bfloat16(run);
  }
  tiles.end();
}

void NarrowFactor::RunPairs(const uint16_t* packed, const Rows& rows) const {
  NarrowTile tile;
  tile.x_step = rows.x_step, tile.y_step = rows.y_step;
  tile.pairs = pairs_;
  tile.bias = kZeros.data();
  tile.low = -kNoBound;
  tile.high = kNoBound;
  for (int64_t i = 0; i < panels_.count; ++i) {
    const NarrowPanels::Panel panel = panels_.At(i);
    tile.weights = packed + panel.column * pairs_ * 2;
    tile.last = panel.last;
    for (int64_t r = 0; r < rows.count; r += kNarrowTileRows) {
      tile.x = rows.x + r * rows.x_step;
      tile.y = rows.y + r * rows.y_step + panel.column;
      const int64_t height = std::min<int64_t>(kNarrowTileRows, rows.count - r);
      NarrowTileOf(static_cast<int>(height), panel.vectors)(tile);
    }
  }
}

}  // namespace smelt::nn
