// Loops of int8 with the roundings of TensorFlow Lite.
#include "smelt/kernels/isa/exact_int8.h"

#include <algorithm>
#include <cmath>

#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

int32_t Wrapped(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }

// As XNNPACK defines it: one float product, halves to the even number.
int Finished(int32_t sum, float scale, const ExactInt8Scales& s) {
  const volatile float product = static_cast<float>(sum) * scale;
  const double q = std::nearbyint(static_cast<double>(product)) + s.zero;
  return static_cast<int>(std::clamp<double>(q, s.low, s.high));
}

// Of columns: most scales lead sums of `size` into the range of int8, some anywhere.
struct Columns {
  std::vector<int32_t> start;
  std::vector<float> scale;
  Columns(int64_t n, int size_bits) {
    for (int64_t i = 0; i < n; ++i) {
      start.push_back(static_cast<int32_t>(Random()() % 4000) - 2000);
      const float by = static_cast<float>(1 + Random()() % 1000) / 500;
      scale.push_back(std::ldexp(by, 7 - size_bits));
      if (i % 5 == 1) scale.back() = std::ldexp(1.0f, 6 - size_bits);  // where halves are met
      if (i % 7 == 2) scale.back() = std::ldexp(by, static_cast<int>(Random()() % 40) - 32);
      if (i % 11 == 3) scale.back() = 0;
    }
  }
  ExactInt8Scales scales() const {
    ExactInt8Scales s;
    s.scale = scale.data();
    s.zero = static_cast<int32_t>(Random()() % 40) - 20;
    if (Random()() % 2 == 0) s.low = s.zero, s.high = 100;
    return s;
  }
};

template <typename X>
std::vector<X> Numbers(int64_t n) {
  std::vector<X> x(static_cast<size_t>(n));
  for (X& v : x) v = static_cast<X>(static_cast<int>(Random()() % 511) - 255);
  return x;
}

TEST(ExactInt8, Widens) {
  for (const int64_t n : Lengths()) {
    AtTheEdge<int8_t> x(Anything<int8_t>(n));
    std::vector<int16_t> y(n + 1, 77);
    IsaExactInt8().widen(x.data(), y.data(), n, -128);
    std::vector<uint8_t> bytes(n + 1, 77);
    IsaExactInt8().to_bytes(x.data(), bytes.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(y[i], x.data()[i] + 128);
      ASSERT_EQ(bytes[i], x.data()[i] + 128);
    }
    ASSERT_EQ(y[n], 77);
    ASSERT_EQ(bytes[n], 77);
  }
}

// As XNNPACK words it, one operation after another; rows with numbers that are none, and of zeros.
TEST(ExactInt8, StepsOfRows) {
  for (const int64_t n : Lengths()) {
    if (n == 0) continue;
    constexpr int64_t kRows = 37;
    std::vector<float> x = Floats(kRows * n, -3, 5);
    for (int64_t r = 0; r < kRows; ++r) {
      float* row = x.data() + r * n;
      for (int64_t i = 0; i < n; ++i) {
        row[i] = r % 5 == 1   ? std::abs(row[i])
                 : r % 5 == 2 ? 0
                              : row[i] * std::ldexp(1.0f, 7 * (r % 4));
      }
      if (r % 7 == 3) row[r % n] = r % 2 == 0 ? kNaN : -kInfinity;
      if (r == 20) std::fill_n(row, n, 1e-44f);
      if (r == 21) row[n - 1] = 3e38f;
    }
    AtTheEdge<float> in(x);
    std::vector<ExactInt8Steps> steps(kRows + 1);
    steps[kRows].scale = 77;
    IsaExactInt8().steps_of_rows(in.data(), kRows, n, steps.data());
    for (int64_t r = 0; r < kRows; ++r) {
      float low = 0, high = 0;
      bool whole_row = true;
      for (int64_t i = 0; i < n; ++i) {
        whole_row &= std::isfinite(x[r * n + i]);
        low = std::min(low, x[r * n + i]);
        high = std::max(high, x[r * n + i]);
      }
      ExactInt8Steps wanted;
      const volatile float range = high - low, inverse = 255.0f / range;
      if (whole_row && range > 0 && std::isfinite(range) && std::isfinite(inverse)) {
        const volatile float at_low = low * inverse, at_high = high * inverse;
        const volatile float below = at_low - 128, above = at_high + 127;
        const float zero = std::nearbyint(
            std::clamp(below + above > 0 ? -128 - at_low : 127 - at_high, -128.0f, 127.0f));
        wanted = {1 / inverse, inverse, -128 - zero, 127 - zero};
      }
      ASSERT_EQ(steps[r].scale, wanted.scale) << r << " of " << n;
      ASSERT_EQ(steps[r].inverse, wanted.inverse) << r << " of " << n;
      ASSERT_EQ(steps[r].low, wanted.low) << r << " of " << n;
      ASSERT_EQ(steps[r].high, wanted.high) << r << " of " << n;
    }
    ASSERT_EQ(steps[kRows].scale, 77);
  }
}

// Rows that lie apart, with weights' sums that wrap around and without.
TEST(ExactInt8, RowsToFloats) {
  constexpr int64_t kRows = 3, kApart = 80;
  for (const int64_t n : Lengths()) {
    if (n > kApart) continue;
    const std::vector<int32_t> sums = Anything<int32_t>(kRows * kApart), w = Anything<int32_t>(n);
    const std::vector<float> scales = Floats(n, 0, 1), bias = Floats(n, -1, 1);
    const ExactInt8Row rows[kRows] = {{1e-9f, -201}, {2e-9f, 0}, {kNaN, 7}};
    for (const bool times : {false, true}) {
      std::vector<float> y(kRows * (n + 1), 77.0f);
      ExactInt8Floats floats;
      if (times) floats.weight_sums = w.data();
      floats.scales = scales.data(), floats.bias = bias.data();
      floats.low = -1, floats.high = 1.5f;
      floats.sums_step = kApart;
      floats.y = y.data(), floats.y_step = n + 1, floats.columns = n;
      IsaExactInt8().to_floats(sums.data(), rows, kRows, floats);
      for (int64_t i = 0; i < kRows * n; ++i) {
        const int64_t r = i / n, c = i % n;
        const int32_t sum =
            Wrapped(sums[r * kApart + c] + (times ? int64_t{w[c]} * rows[r].times : 0));
        const double v = double{static_cast<float>(sum) * rows[r].scale} * scales[c] + bias[c];
        if (r == 2) {
          ASSERT_TRUE(std::isnan(y[r * (n + 1) + c]));
          continue;
        }
        ASSERT_NEAR(y[r * (n + 1) + c], std::clamp(v, -1.0, 1.5), 1e-6) << r << " " << c;
      }
      for (int64_t r = 0; r < kRows; ++r) ASSERT_EQ(y[r * (n + 1) + n], 77);
    }
  }
}

// Numbers of type X, int16_t or uint8_t, in groups of `group`, of which there are multiples of
// `unit`.
template <typename X>
void CheckTiles(int64_t group, void (*run)(const ExactInt8Tile& tile, int rows),
                int most_rows = IsaExactInt8().rows, int64_t unit = 1) {
  const int64_t panel = IsaExactInt8().panel;
  for (int rows = 1; rows <= most_rows; ++rows) {
    for (const int64_t groups : {unit, 2 * unit, 5 * unit, int64_t{64}}) {
      for (const int64_t num_segments : {1, 3}) {
        for (const int64_t columns : {int64_t{1}, panel / 2 + 1, panel - 1, panel}) {
          for (int turn = 0; turn < 2; ++turn) {
            const int64_t length = groups * group;
            // Segments of a row lie a number apart, rows overlap, some out of order.
            AtTheEdge<X> x(Numbers<X>(num_segments * (length + 1) + rows - 1 - 1));
            std::vector<const X*> at;
            for (int r = 0; r < rows; ++r) {
              at.push_back(x.data() + (rows % 3 == 0 ? (r * 5 + 1) % rows : r));
            }
            std::vector<int64_t> segments;
            for (int64_t s = 0; s < num_segments; ++s) segments.push_back(s * (length + 1));
            AtTheEdge<int8_t> w(Anything<int8_t>(num_segments * length * panel));
            const Columns by(panel, 15);
            ExactInt8Tile tile;
            if constexpr (std::is_same_v<X, uint8_t>) {
              tile.byte_rows = at.data();
            } else {
              tile.rows = at.data();
            }
            tile.segments = segments.data();
            tile.num_segments = num_segments, tile.groups = groups, tile.weights = w.data();
            tile.start = by.start.data(), tile.scales = by.scales();
            tile.y_step = columns + 1, tile.columns = columns;
            std::vector<int16_t> wide_w(w.data(), w.data() + num_segments * length * panel);
            AtTheEdge<int16_t> wide(wide_w);
            tile.wide_weights = wide.data();
            std::vector<int8_t> y(rows * (columns + 1), 77);
            tile.y = y.data();
            run(tile, rows);
            std::vector<int32_t> sums(rows * panel + 1, 77);
            tile.sums = sums.data();
            run(tile, rows);
            ASSERT_EQ(sums.back(), 77);
            for (int r = 0; r < rows; ++r) {
              for (int64_t c = 0; c < columns; ++c) {
                int64_t sum = by.start[c];
                for (int64_t s = 0; s < num_segments; ++s) {
                  for (int64_t k = 0; k < length; ++k) {
                    const int64_t place =
                        ((s * groups + k / group) * panel + c) * group + k % group;
                    sum += int64_t{at[r][segments[s] + k]} * w.data()[place];
                  }
                }
                ASSERT_EQ(sums[r * panel + c], Wrapped(sum));
                ASSERT_EQ(y[r * (columns + 1) + c],
                          Finished(Wrapped(sum), by.scale[c], tile.scales))
                    << sum << " in row " << r << " of " << rows << ", column " << c << " of "
                    << columns << ", " << groups << " groups";
              }
              ASSERT_EQ(y[r * (columns + 1) + columns], 77);
            }
          }
        }
      }
    }
  }
}

TEST(ExactInt8, Tiles) { CheckTiles<int16_t>(IsaExactInt8().group, IsaExactInt8().tile); }

TEST(ExactInt8, TilesOfWideWeights) {
  const ExactInt8Loops& loops = IsaExactInt8();
  if (loops.wide_tile == nullptr) GTEST_SKIP() << "there is no such loop";
  CheckTiles<int16_t>(loops.group, loops.wide_tile);
  // Sums that become int8 by way of floats, as those of a block do.
  const int64_t panel = loops.panel, groups = 9, length = groups * loops.group, segment = 0;
  const std::vector<int16_t> x = Numbers<int16_t>(length + loops.rows),
                             w = Numbers<int16_t>(length * panel);
  const std::vector<int32_t> start = [&] {
    const std::vector<int16_t> some = Anything<int16_t>(panel);
    return std::vector<int32_t>(some.begin(), some.end());
  }();
  const std::vector<float> scales = Floats(panel, 1e-4F, 1e-3F);
  for (int rows = 1; rows <= loops.rows; ++rows) {
    for (const int64_t columns : {int64_t{1}, panel - 1, panel}) {
      for (const bool adds : {false, true}) {
        std::vector<const int16_t*> at;
        for (int r = 0; r < rows; ++r) at.push_back(x.data() + r);
        std::vector<int32_t> sums(rows * panel);
        std::vector<int8_t> y(rows * panel, 77), want(y);
        const std::vector<int8_t> addend = Anything<int8_t>(rows * panel);
        Int8SumBlock block;
        block.rows = rows, block.width = panel, block.columns = columns;
        block.scales = scales.data();
        block.zero = -3, block.low = -120, block.flip = 0x80;
        block.addend_zero = 4, block.addend_scale = 0.7F;
        block.y = want.data(), block.y_step = block.addend_step = panel;
        if (adds) block.addend = addend.data();
        ExactInt8Tile tile;
        tile.rows = at.data(), tile.segments = &segment, tile.num_segments = 1;
        tile.groups = groups, tile.wide_weights = w.data(), tile.start = start.data();
        tile.sums = sums.data();
        loops.wide_tile(tile, rows);
        PairSumLoops()->to_int8(block, sums.data());
        block.y = y.data();
        tile.block = &block;
        loops.wide_tile(tile, rows);
        ASSERT_EQ(y, want) << rows << " rows, " << columns << " columns";
      }
    }
  }
}

TEST(ExactInt8, TilesOfBytes) {
  const ExactInt8Loops& loops = IsaExactInt8();
  if (loops.byte_tile == nullptr) GTEST_SKIP() << "the processor multiplies no bytes";
  CheckTiles<uint8_t>(loops.byte_group, loops.byte_tile);
}

TEST(ExactInt8, TilesOfMatrices) {
  const ExactInt8Loops& loops = IsaExactInt8();
  if (loops.matrix_tile == nullptr) GTEST_SKIP() << "the processor multiplies no matrices";
  loops.begin_matrices();
  CheckTiles<uint8_t>(loops.byte_group, loops.matrix_tile, loops.matrix_rows, loops.matrix_groups);
  loops.end_matrices();
}

TEST(ExactInt8, Depthwise) {
  const ExactInt8Loops& loops = IsaExactInt8();
  constexpr int64_t kBlock = kExactDepthwiseBlock;
  for (const int64_t channels : {1, 7, 15, 16}) {
    for (const int64_t pairs : {1, 5}) {
      for (const int64_t results : {1, 2, 3, 8}) {
        for (const bool adds : {false, true}) {
          const int64_t depth = kBlock, step = 2 * depth;
          AtTheEdge<int16_t> x(Numbers<int16_t>((results - 1) * step + 2 * pairs * depth));
          std::vector<int64_t> taps;
          for (int64_t t = 0; t < 2 * pairs; ++t) taps.push_back((t ^ 1) * depth);
          std::vector<int16_t> w;
          for (const int8_t v : Anything<int8_t>(2 * pairs * kBlock)) w.push_back(v);
          const Columns by(kBlock, 13);
          ExactInt8Depthwise run;
          run.x = x.data(), run.taps = taps.data(), run.pairs = pairs, run.weights = w.data();
          run.start = by.start.data(), run.scales = by.scales();
          run.results = results, run.x_step = step, run.y_step = channels + 1;
          run.channels = channels;
          std::vector<int8_t> y(results * (channels + 1), 77);
          run.y = y.data();
          loops.depthwise(run);
          std::vector<int32_t> sums(results * kBlock + 1, 77);
          run.sums = sums.data();
          loops.depthwise(run);
          ASSERT_EQ(sums.back(), 77);
          if (loops.depthwise_of_block != nullptr) {
            // Sums that become int8 by way of floats, as those of a block do.
            const std::vector<float> scales = Floats(kBlock, 1e-3F, 1e-2F);
            const std::vector<int8_t> addend = Anything<int8_t>(results * channels);
            std::vector<int8_t> want(results * channels + 1, 77), got(want);
            Int8SumBlock block;
            block.rows = results, block.width = kBlock, block.columns = channels;
            block.scales = scales.data(), block.zero = 2, block.high = 99;
            block.y = want.data(), block.y_step = block.addend_step = channels;
            if (adds) block.addend = addend.data();
            PairSumLoops()->to_int8(block, sums.data());
            block.y = got.data();
            run.block = &block;
            loops.depthwise_of_block(run);
            ASSERT_EQ(got, want);
          }
          for (int64_t r = 0; r < results; ++r) {
            for (int64_t c = 0; c < channels; ++c) {
              const int64_t place = loops.depthwise_places[c];
              int64_t sum = by.start[place];
              for (int64_t t = 0; t < 2 * pairs; ++t) {
                sum += int64_t{x.data()[r * step + taps[t] + c]} *
                       w[(t / 2 * kBlock + place) * 2 + t % 2];
              }
              ASSERT_EQ(sums[r * kBlock + c], Wrapped(sum));
              ASSERT_EQ(y[r * (channels + 1) + c],
                        Finished(Wrapped(sum), by.scale[place], run.scales))
                  << channels << " channels, " << pairs << " pairs, result " << r << ", " << c;
            }
            ASSERT_EQ(y[r * (channels + 1) + channels], 77);
          }
        }
      }
    }
  }
}

TEST(ExactInt8, Rows) {
  const ExactInt8Loops& loops = IsaExactInt8();
  for (const int64_t n : Lengths()) {
    const std::vector<int8_t> x = Anything<int8_t>(n), before = Anything<int8_t>(n);
    std::vector<int8_t> most = before;
    std::vector<int32_t> sums(before.begin(), before.end());
    loops.maximum(x.data(), most.data(), n);
    loops.accumulate(x.data(), sums.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(most[i], std::max(x[i], before[i]));
      ASSERT_EQ(sums[i], x[i] + before[i]);
    }
    std::vector<float> v = Floats(n, -40, 40);
    for (int64_t i = 0; i < n; ++i) {
      if (i % 3 == 0) v[i] = std::nearbyint(v[i] * 8) / 8;
      if (i % 7 == 3) v[i] = i % 2 == 0 ? kNaN : i % 4 == 1 ? kInfinity : -kInfinity;
      if (i % 7 == 4) v[i] = 0.125f * 0.99999994f;
      if (i % 7 == 5) v[i] = i % 2 == 0 ? 3e38f : -3e38f;
    }
    std::vector<int16_t> steps(n + 1, 77);
    loops.steps_of(v.data(), steps.data(), n, 4, -200, 180);
    std::vector<int16_t> away(n + 1, 77);
    loops.steps_away_of(v.data(), away.data(), n, 4, -200, 180);
    std::vector<uint8_t> bytes(n + 1, 77);
    loops.bytes_of(v.data(), bytes.data(), n, 4, -75, 180);
    std::vector<float> other(n + 1, 77.0f);
    const std::vector<float> scales = Floats(n, 0, 1), bias = Floats(n, -1, 1);
    loops.to_float_by_four(sums.data(), 0.3f, scales.data(), bias.data(), -9, kInfinity,
                           other.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const float four = std::isnan(v[i]) ? -200 : std::clamp(v[i] * 4, -200.0f, 180.0f);
      ASSERT_EQ(steps[i], std::nearbyint(four));
      ASSERT_EQ(away[i], std::round(four));
      ASSERT_EQ(bytes[i], std::nearbyint(std::max(four, -75.0f)) + 75);
      const bool left = i >= n / 4 * 4;
      const float once = static_cast<float>(sums[i]) * (left ? 0.3f : scales[i]);
      // Rounded here too, also where the compiler would fuse what follows.
      const volatile float scaled = once * (left ? scales[i] : 0.3f);
      ASSERT_EQ(other[i], std::max(-9.0f, scaled + bias[i]));
    }
    ASSERT_EQ(steps[n], 77);
    ASSERT_EQ(away[n], 77);
    ASSERT_EQ(other[n], 77);
    std::vector<int8_t> y(n + 1, 77);
    for (const int32_t zero : {-3, 128, -65536}) {
      const float scale = 4;
      loops.quantize(v.data(), y.data(), n, {&scale, zero, -100, 127});
      for (int64_t i = 0; i < n; ++i) {
        const double q = std::isnan(v[i]) ? 1e9 : std::nearbyint(double{v[i] * 4}) + zero;
        ASSERT_EQ(y[i], std::clamp(q, -100.0, 127.0)) << v[i];
      }
      ASSERT_EQ(y[n], 77);
    }
  }
}

TEST(ExactInt8, SumsAndProducts) {
  const ExactInt8Loops& loops = IsaExactInt8();
  for (const int64_t n : Lengths()) {
    for (const int form : {0, 1, 2, 3}) {
      const std::vector<int8_t> a = Anything<int8_t>(n + 1), b = Anything<int8_t>(n + 1);
      ExactInt8Loops::Operand p, q;
      p.x = a.data(), p.step = form & 1, p.zero = -7, p.times = 1518500;
      q.x = b.data(), q.step = form >> 1, q.zero = 12;
      std::vector<int8_t> y(n + 1, 77);
      for (const int32_t times : {1 << 20, -(1 << 20), 3, 0}) {
        q.times = times;
        const ExactInt8Sum s = {1 << 20, 21, 5, -100, 120};
        loops.add(p, q, s, y.data(), n);
        for (int64_t i = 0; i < n; ++i) {
          const int32_t sum = s.offset + a[i * p.step] * p.times + b[i * q.step] * q.times;
          ASSERT_EQ(y[i], std::clamp((sum >> s.right) + 5, -100, 120))
              << i << " of " << n << ", form " << form;
        }
        ASSERT_EQ(y[n], 77);
      }
      for (const float scale : {0.0078125f, 0.00791f, 0.0f, 3e5f}) {
        const ExactInt8Scales s = {&scale, 5, -100, 120};
        loops.multiply(p, q, s, y.data(), n);
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(y[i], Finished((a[i * p.step] + 7) * (b[i * q.step] - 12), scale, s));
        }
        ASSERT_EQ(y[n], 77);
      }
    }
  }
}

}  // namespace
}  // namespace smelt
