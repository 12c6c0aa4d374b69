// Maxima of windows against a comparison for each element.
#include <deque>

#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/isa/isa.h"
#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

TEST(IsaPool, MaximaOfTaps) {
  const int64_t lanes = IsaConv().lanes;
  const float special[] = {kNaN, kInfinity, -kInfinity, 0.0f, -0.0f};
  for (const int64_t depth : {lanes, lanes + 1, 2 * lanes - 1, 4 * lanes, 9 * lanes + 3}) {
    for (const int64_t count : {0, 1, 2, 3, 4, 9, 50}) {
      for (const int64_t pixels : {0, 1, 5}) {
        const int64_t step = 2 * depth;
        std::vector<std::vector<float>> rows;
        for (int64_t t = 0; t < count; ++t) {
          rows.push_back(Floats(pixels > 0 ? (pixels - 1) * step + depth : 0, -9, 1));
          for (size_t i = static_cast<size_t>(t); i < rows.back().size(); i += 7) {
            rows.back()[i] = special[i % 5];
          }
        }
        std::deque<AtTheEdge<float>> edges;
        std::vector<const float*> taps;
        for (const auto& row : rows) taps.push_back(edges.emplace_back(row).data());
        std::vector<float> y(pixels * depth + 1, 77.0f);
        IsaConv().max_pool(taps.data(), count, pixels, step, depth, y.data());
        for (int64_t i = 0; i < pixels * depth; ++i) {
          float wanted = std::numeric_limits<float>::lowest();
          for (const auto& row : rows) {
            const float x = row[i / depth * step + i % depth];
            if (x > wanted) wanted = x;
          }
          ASSERT_EQ(y[i], wanted) << depth << " channels, " << count << " taps, at " << i;
        }
        ASSERT_EQ(y.back(), 77.0f);
      }
    }
  }
}

}  // namespace
}  // namespace smelt
