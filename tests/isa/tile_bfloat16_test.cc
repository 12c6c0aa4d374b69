// Tiles of bfloat16 against sums that are exact: of few halves.
#include "smelt/kernels/isa/tile_bfloat16.h"

#include <algorithm>
#include <bit>

#include "smelt/base/processor.h"
#include "smelt/tensor/float16.h"
#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

std::vector<uint16_t> Halves(int64_t n) {
  std::vector<uint16_t> row(static_cast<size_t>(n));
  for (uint16_t& x : row) x = Bfloat16(static_cast<float>(Random()() % 9) / 2 - 2).bits;
  return row;
}
float Wide(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// A tile whose rows end where a page does. One row has a NaN, another an infinity.
void CompareTile(int rows, int vecs, int64_t pairs, int64_t columns, bool adds, bool in_place) {
  constexpr int64_t kLanes = kNarrowTileLanes;
  const int64_t width = vecs * kLanes, step = width - kLanes + columns;
  std::vector<uint16_t> numbers = Halves(rows * pairs * 2);
  if (pairs > 0 && rows > 1) numbers[0] = Bfloat16(kNaN).bits;
  if (pairs > 0 && rows > 2) numbers[static_cast<size_t>(pairs * 4 - 1)] = Bfloat16(kInfinity).bits;
  AtTheEdge<uint16_t> x(numbers);
  AtTheEdge<uint16_t> w(Halves(pairs * 2 * width));
  std::vector<float> bias = Floats(width, -4, 4);
  for (float& b : bias) b = std::nearbyint(b);
  const std::vector<uint16_t> added = Halves(rows * step);
  std::vector<uint16_t> results = added;
  if (!in_place) results.assign(results.size(), 0x4242);
  AtTheEdge<uint16_t> addend(added), y(results);
  NarrowTile tile;
  tile.x = x.data(), tile.x_step = pairs * 2, tile.pairs = pairs;
  tile.weights = w.data(), tile.bias = bias.data();
  tile.addend = !adds ? nullptr : in_place ? y.data() : addend.data();
  tile.y = y.data(), tile.y_step = step;
  tile.last = static_cast<uint8_t>((1u << columns / 2) - 1);
  tile.fetches = in_place;
  tile.low = -kInfinity, tile.high = pairs == 5 ? 6 : kInfinity;
  if (pairs == 5) tile.low = 0;
  NarrowTileOf(rows, vecs)(tile);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < step; ++c) {
      float wanted = bias[static_cast<size_t>(c)];
      for (int64_t k = 0; k < pairs * 2; ++k) {
        wanted +=
            Wide(x.data()[r * pairs * 2 + k]) * Wide(w.data()[(k / 2 * width + c) * 2 + k % 2]);
      }
      if (adds) wanted += Wide(added[static_cast<size_t>(r * step + c)]);
      if (!std::isnan(wanted)) wanted = std::clamp(wanted, tile.low, tile.high);
      const float got = Wide(y.data()[r * step + c]);
      ASSERT_TRUE(std::isnan(wanted) ? std::isnan(got)
                                     : got == static_cast<float>(Bfloat16(wanted)))
          << rows << " rows, " << vecs << " vectors, " << pairs << " pairs, " << columns
          << " columns: " << got << " for " << wanted << " at " << r << ", " << c;
    }
  }
}

TEST(IsaBfloat16, Tiles) {
  if (!CpuHas(CpuFeature::kX86V4) || !CpuHas(CpuFeature::kDotBfloat16)) {
    GTEST_SKIP() << "no dot products of bfloat16; their tiles are not tested";
  }
  for (int rows = 1; rows <= kNarrowTileRows; ++rows) {
    for (int vecs = 1; vecs <= kNarrowTileVecs; ++vecs) {
      for (const int64_t pairs : {0, 1, 5, 24}) {
        for (const int64_t columns : {2, 8, 14, 16}) {
          for (const bool adds : {false, true}) {
            CompareTile(rows, vecs, pairs, columns, adds, false);
            if (adds) CompareTile(rows, vecs, pairs, columns, adds, true);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace smelt
