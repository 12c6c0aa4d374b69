// Fixed-point loops beside TensorFlow Lite's arithmetic one number at a time.
#include "smelt/kernels/isa/fixed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

// x / 2^exponent with halves away from 0.
int64_t HalvesAway(int64_t x, int exponent) {
  if (exponent == 0) return x;
  const int64_t half = int64_t{1} << (exponent - 1);
  return x >= 0 ? (x + half) >> exponent : -((-x + half) >> exponent);
}

TEST(IsaFixed, Times) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  for (const int64_t n : Lengths()) {
    for (const FixedFactor f :
         {FixedFactor{1 << 30, 0, 0}, FixedFactor{kMost, 0, 7}, FixedFactor{1518500250, 3, 0},
          FixedFactor{1 << 30, 0, 31}, FixedFactor{0, 0, 4}, FixedFactor{1 << 30, 20, 11}}) {
      std::vector<int32_t> x = Anything<int32_t>(n);
      for (int64_t i = 0; i < n; i += 3) {
        x[i] = i % 2 == 0 ? static_cast<int32_t>(i) - 50 : i % 4 == 1 ? kLeast : kMost;
      }
      std::vector<int32_t> y = x;
      y.push_back(77);
      IsaFixed().times(y.data(), n, f);
      for (int64_t i = 0; i < n; ++i) {
        const auto shifted = static_cast<int32_t>(static_cast<uint32_t>(x[i]) << f.left);
        const int64_t high = (int64_t{shifted} * f.fraction + (int64_t{1} << 30)) >> 31;
        ASSERT_EQ(y[i], HalvesAway(high, f.right)) << x[i] << " by " << f.fraction;
      }
      ASSERT_EQ(y[n], 77);
    }
  }
}

TEST(IsaFixed, FromAndTo) {
  for (const int64_t n : Lengths()) {
    const std::vector<int8_t> bytes = Anything<int8_t>(n + 1);
    const std::vector<int16_t> words = Anything<int16_t>(n + 1);
    for (const int64_t step : {0, 1}) {
      std::vector<int32_t> a(n + 1, 77), b(n + 1, 77);
      IsaFixed().from_int8(bytes.data(), step, -128, 20, a.data(), n);
      IsaFixed().from_int16(words.data(), step, 65536, 15, b.data(), n);
      std::vector<int8_t> narrow(n + 1, 77);
      std::vector<int16_t> wide(n + 1, 77);
      IsaFixed().to_int8(a.data(), -65536, -100, 127, narrow.data(), n);
      IsaFixed().to_int16(b.data(), 7, -32768, 30000, wide.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        const auto p = static_cast<int32_t>(static_cast<uint32_t>(bytes[i * step] + 128) << 20);
        const auto q = static_cast<int32_t>(static_cast<uint32_t>(words[i * step] - 65536) << 15);
        ASSERT_EQ(a[i], p);
        ASSERT_EQ(b[i], q);
        ASSERT_EQ(narrow[i], std::clamp<int64_t>(int64_t{p} - 65536, -100, 127));
        ASSERT_EQ(wide[i], std::clamp<int64_t>(int64_t{q} + 7, -32768, 30000));
      }
      ASSERT_EQ(a[n], 77);
      ASSERT_EQ(b[n], 77);
      ASSERT_EQ(narrow[n], 77);
      ASSERT_EQ(wide[n], 77);
    }
  }
}

}  // namespace
}  // namespace smelt
