// Maxima of windows against a comparison for each element.
#include <algorithm>
#include <bit>
#include <deque>
#include <iterator>
#include <type_traits>

#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/isa/isa.h"
#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

float Wide(float x) { return x; }
float Wide(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }

// T: float or the bits of bfloat16.
template <typename T, typename Pool>
void CompareMaxima(Pool pool) {
  const int64_t lanes = IsaConv().lanes * 4 / static_cast<int64_t>(sizeof(T));
  const float special[] = {kNaN, kInfinity, -kInfinity, 0.0f, -0.0f};
  const auto stored = [](float f) {
    if constexpr (std::is_same_v<T, float>) {
      return f;
    } else {
      return static_cast<T>(std::bit_cast<uint32_t>(f) >> 16);
    }
  };
  for (const int64_t depth : {lanes, lanes + 1, 2 * lanes - 1, 4 * lanes, 9 * lanes + 3}) {
    for (const int64_t count : {0, 1, 2, 3, 4, 9, 50}) {
      for (const int64_t pixels : {0, 1, 5}) {
        const int64_t step = 2 * depth;
        std::vector<std::vector<T>> rows;
        for (int64_t t = 0; t < count; ++t) {
          auto row = Floats(pixels > 0 ? (pixels - 1) * step + depth : 0, -9, 1);
          for (size_t i = static_cast<size_t>(t); i < row.size(); i += 7) row[i] = special[i % 5];
          std::ranges::transform(row, std::back_inserter(rows.emplace_back()), stored);
        }
        std::deque<AtTheEdge<T>> edges;
        std::vector<const T*> taps;
        for (const auto& row : rows) taps.push_back(edges.emplace_back(row).data());
        std::vector<T> y(pixels * depth + 1, stored(77.0f));
        pool(taps.data(), count, pixels, step, depth, y.data());
        for (int64_t i = 0; i < pixels * depth; ++i) {
          T wanted = stored(std::numeric_limits<float>::lowest());
          for (const auto& row : rows) {
            const T x = row[i / depth * step + i % depth];
            if (Wide(x) > Wide(wanted)) wanted = x;
          }
          ASSERT_EQ(Wide(y[i]), Wide(wanted))
              << depth << " channels, " << count << " taps, at " << i;
        }
        ASSERT_EQ(Wide(y.back()), 77.0f);
      }
    }
  }
}

TEST(IsaPool, MaximaOfTaps) { CompareMaxima<float>(IsaConv().max_pool); }

TEST(IsaPool, MaximaOfNarrowTaps) { CompareMaxima<uint16_t>(IsaConv().narrow_max_pool); }

}  // namespace
}  // namespace smelt
