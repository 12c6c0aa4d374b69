// What becomes of the sums of int8 layers in floats.
#include "smelt/kernels/isa/int8_sums.h"

#include <algorithm>
#include <cmath>

#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

constexpr int64_t kStepMore = 3;  // behind the columns of a row

// Powers of two, so that products and sums are exact and halves are met.
struct SumsCase {
  std::vector<float> scales;
  std::vector<int8_t> addend, y;
  Int8SumBlock block;
  SumsCase(int64_t rows, int64_t width, int64_t columns, bool adds, uint8_t flip) {
    for (int64_t c = 0; c < width; ++c) scales.push_back(c % 3 == 0 ? 0.25F : 0.5F);
    const int64_t step = columns + kStepMore;
    addend = Anything<int8_t>(rows * step);
    y.assign(static_cast<size_t>(rows * step), 77);
    block.rows = rows, block.width = width, block.columns = columns;
    block.scales = scales.data();
    block.zero = 5, block.low = -100, block.high = 90;
    block.flip = flip;
    block.y = y.data();
    block.y_step = block.addend_step = step;
    block.addend_zero = -7, block.addend_scale = 0.125F;
    block.addend_flip = flip;
    if (adds) block.addend = addend.data();
  }
  float Added(int64_t r, int64_t c) const {
    const auto bits = static_cast<uint8_t>(addend[r * block.addend_step + c]);
    return (static_cast<float>(static_cast<int8_t>(bits ^ block.flip)) + 7) * 0.125F;
  }
  void Check(int64_t r, int64_t c, float v) const {
    v += block.zero;
    v = v > block.low ? v : block.low;
    v = v < block.high ? v : block.high;
    const auto want = static_cast<int8_t>(std::nearbyint(v));
    const auto bits = static_cast<uint8_t>(y[r * block.y_step + c]);
    ASSERT_EQ(static_cast<int8_t>(bits ^ block.flip), want) << v << " in row " << r << ", " << c;
  }
  void CheckRest() const {
    for (int64_t r = 0; r < block.rows; ++r) {
      for (int64_t c = block.columns; c < block.y_step; ++c) {
        ASSERT_EQ(y[r * block.y_step + c], 77);
      }
    }
  }
};

TEST(Int8Sums, BecomeInt8AndFloats) {
  const Int8SumLoops* loops = PairSumLoops();
  if (loops == nullptr) GTEST_SKIP() << "the processor multiplies no pairs of 16 bits";
  for (const int64_t width : {16, 32}) {
    for (const int64_t columns : {int64_t{1}, int64_t{9}, width - 1, width}) {
      for (const int64_t rows : {1, 3, 8}) {
        for (const bool adds : {false, true}) {
          for (const uint8_t flip : {0, 0x80}) {
            SumsCase t(rows, width, columns, adds, flip);
            std::vector<int32_t> sums(static_cast<size_t>(rows * width));
            for (int32_t& s : sums) s = static_cast<int32_t>(Random()() % 1200) - 600;
            sums[0] = 1 << 30;
            loops->to_int8(t.block, sums.data());
            for (int64_t r = 0; r < rows; ++r) {
              for (int64_t c = 0; c < columns; ++c) {
                const float v = static_cast<float>(sums[r * width + c]) * t.scales[c];
                t.Check(r, c, v + (adds ? t.Added(r, c) : 0));
              }
            }
            t.CheckRest();

            std::vector<float> v(sums.size());
            loops->to_floats(t.block, sums.data(), v.data());
            for (size_t i = 0; i < v.size(); ++i) {
              ASSERT_EQ(v[i], static_cast<float>(sums[i]) * t.scales[i % t.scales.size()]);
            }
            std::vector<float> more(v);
            t.block.addend = t.addend.data();
            loops->add_int8(t.block, more.data());
            for (int64_t r = 0; r < rows; ++r) {
              for (int64_t c = 0; c < columns; ++c) {
                ASSERT_EQ(more[r * width + c], v[r * width + c] + t.Added(r, c));
              }
            }

            const std::vector<float> floats = Floats(rows * columns, -9, 9);
            for (const int64_t step : {int64_t{0}, columns}) {
              more = v;
              loops->add_floats(t.block, floats.data(), step, more.data());
              for (int64_t r = 0; r < rows; ++r) {
                for (int64_t c = 0; c < columns; ++c) {
                  ASSERT_EQ(more[r * width + c], v[r * width + c] + floats[r * step + c]);
                }
              }
            }

            t.block.addend = adds ? t.addend.data() : nullptr;
            v[0] = kNaN;
            if (v.size() > 40) v[33] = kInfinity, v[34] = -kInfinity;
            loops->floats_to_int8(t.block, v.data());
            for (int64_t r = 0; r < rows; ++r) {
              for (int64_t c = 0; c < columns; ++c) {
                t.Check(r, c, v[r * width + c] * t.scales[c] + (adds ? t.Added(r, c) : 0));
              }
            }
            t.CheckRest();
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace smelt
