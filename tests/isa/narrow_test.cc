// Loops of int8 and bfloat16, and those that measure the processor.
#include <algorithm>
#include <cstring>

#include "smelt/base/processor.h"
#include "smelt/kernels/isa/bfloat16.h"
#include "smelt/kernels/isa/depthwise_int8.h"
#include "smelt/kernels/isa/int8.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/peak.h"
#include "smelt/kernels/isa/tile_int8.h"
#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

// rint(clamp(v, low, high)), a NaN as low.
int Rounded(float v, float low, float high) {
  v = v > low ? v : low;
  return static_cast<int>(std::nearbyint(v < high ? v : high));
}

TEST(IsaInt8, ThereAndBack) {
  const Int8Loops& loops = IsaInt8();
  // A power of two, so that quotients and sums are exact and ties are.
  const float scale = 0.25f, zero = 3, low = -100, high = 127;
  for (const int64_t n : Lengths()) {
    std::vector<float> x = Floats(n, -40, 40);
    for (int64_t i = 0; i < n; ++i) {
      if (i % 3 == 0) x[i] = std::nearbyint(x[i] * 8) / 8;
      if (i % 7 == 3) x[i] = i % 2 == 0 ? kNaN : i % 4 == 1 ? kInfinity : -kInfinity;
    }
    std::vector<int8_t> y(n + 1, 77);
    std::vector<uint8_t> u(n + 1, 77);
    loops.quantize(x.data(), y.data(), n, scale, zero, low, high);
    loops.quantize_unsigned(x.data(), u.data(), n, scale, zero, low, high);
    for (int64_t i = 0; i < n; ++i) {
      const int wanted = Rounded(x[i] / scale + zero, low, high);
      ASSERT_EQ(y[i], wanted) << x[i] << ", " << i << " of " << n;
      ASSERT_EQ(u[i], wanted + 128) << x[i] << ", " << i << " of " << n;
    }
    ASSERT_EQ(y[n], 77);
    ASSERT_EQ(u[n], 77);
    std::vector<float> back(n), unsigned_back(n);
    loops.dequantize(y.data(), back.data(), n, scale, zero);
    loops.dequantize_unsigned(u.data(), unsigned_back.data(), n, scale, zero);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(back[i], (static_cast<float>(y[i]) - zero) * scale);
      ASSERT_EQ(unsigned_back[i], back[i]);
    }
    const std::vector<float> scales = Floats(n + 1, 0, 1);
    std::vector<int32_t> bias(n);
    for (int32_t& b : bias) b = static_cast<int32_t>(Random()() % 1000) - 500;
    for (float& v : x) v = std::isfinite(v) ? std::nearbyint(v) : 9;
    for (const int64_t step : {0, 1}) {
      loops.scale_sums(x.data(), bias.data(), scales.data(), step, back.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(back[i], (x[i] + static_cast<float>(bias[i])) * scales[i * step]);
      }
    }
  }
}

TEST(IsaBfloat16, Operations) {
  const auto widen = [](uint16_t bits) {
    const uint32_t word = uint32_t{bits} << 16;
    float x;
    std::memcpy(&x, &word, sizeof(x));
    return x;
  };
  const auto round = [&](float x) {
    uint16_t bits;
    Isa().f32_to_bf16(&x, &bits, 1);
    return bits;
  };
  const auto apply = [&](IsaBinary op, float a, float b) {
    switch (op) {
      case IsaBinary::kAdd:
        return a + b;
      case IsaBinary::kSub:
        return a - b;
      case IsaBinary::kMul:
        return a * b;
      case IsaBinary::kDiv:
        return a / b;
      default:
        return widen(round(a - b)) * widen(round(a - b));
    }
  };
  for (const IsaBinary op : {IsaBinary::kAdd, IsaBinary::kSub, IsaBinary::kMul, IsaBinary::kDiv,
                             IsaBinary::kSquaredDifference}) {
    const IsaBinaryLoops loops = Bfloat16Loops(op);
    for (const int64_t n : Lengths()) {
      const std::vector<uint16_t> a = Anything<uint16_t>(n + 1), b = Anything<uint16_t>(n + 1);
      std::vector<uint16_t> vv(n), vs(n), sv(n);
      loops.vv(a.data(), b.data(), vv.data(), n);
      loops.vs(a.data(), b.data(), vs.data(), n);
      loops.sv(a.data(), b.data(), sv.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        const auto check = [&](uint16_t got, uint16_t x, uint16_t y) {
          const float wanted = widen(round(apply(op, widen(x), widen(y))));
          ASSERT_TRUE(Same(widen(got), wanted))
              << widen(x) << ", " << widen(y) << " gives " << widen(got) << " for " << wanted;
        };
        check(vv[i], a[i], b[i]);
        check(vs[i], a[i], b[0]);
        check(sv[i], a[0], b[i]);
      }
    }
  }
  EXPECT_EQ(Bfloat16Loops(IsaBinary::kMaximum).vv, nullptr);
  EXPECT_EQ(Bfloat16Unary(UnaryF32::kTanh), nullptr);
  for (const UnaryF32 op : {UnaryF32::kRelu, UnaryF32::kRelu6}) {
    for (const int64_t n : Lengths()) {
      const std::vector<uint16_t> x = Anything<uint16_t>(n);
      std::vector<uint16_t> y(n);
      Bfloat16Unary(op)(x.data(), y.data(), n, 0);
      for (int64_t i = 0; i < n; ++i) {
        const float v = widen(x[i]), low = v <= 0 ? 0 : v;
        ASSERT_TRUE(Same(widen(y[i]), op == UnaryF32::kRelu6 && low > 6 ? 6.0f : low)) << v;
      }
    }
  }
}

bool MultipliesBytes() {
  const bool enough = Isa().level == IsaLevel::kBaseline ? !IsaSupported(IsaLevel::kAvx2)
                                                         : Isa().level == IsaLevel::kAvx512;
  return enough && CpuHas(CpuFeature::kDotBytes);
}

double SwishOf(double x) { return x / (1 + std::exp(-x)); }

// Either side of a half may be the answer where float and double differ.
void CheckSwish(const SwishInt8Steps& steps, double number, float got_float, int got_byte) {
  const double wanted = SwishOf(number);
  if (!steps.bytes) {
    // exp(-x) has the rounding of x; below -83 it stays as it is.
    ASSERT_TRUE(std::abs(got_float - wanted) < 1e-33 ||
                Near(got_float, wanted, 6e-7 + std::abs(number) * 2e-7))
        << number;
    return;
  }
  const double q = std::clamp<double>(wanted * steps.factor + steps.zero, steps.low, steps.high);
  ASSERT_LE(std::abs(got_byte - q), 0.5001) << number;
}

TEST(IsaInt8, Depthwise) {
  if (!MultipliesBytes()) GTEST_SKIP() << "no dot products of bytes; depthwise int8 is not tested";
  for (const int64_t channels : {1, 3, 4, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 128, 130}) {
    for (const int groups : {1, 3}) {
      for (const int form : {0, 1, 2, 3, 4, 5, 6}) {
        const bool x_unsigned = form % 2 == 1, y_unsigned = form == 2 || form == 3 || form == 6;
        // x * sigmoid(x) as bytes or as floats.
        const bool swish = form >= 4, floats = form == 5;
        const int64_t taps = groups * 4, pairs = 3, x_zero = 5;
        // The pixels of the taps lie one behind the other; each pair begins two further.
        AtTheEdge<int8_t> x(Anything<int8_t>((taps + 2 * (pairs - 1)) * channels));
        std::vector<int8_t> w = Anything<int8_t>(2 * taps * channels);
        std::vector<const int8_t*> weights, pixels;
        for (int64_t t = 0; t < taps; ++t) {
          // The second result's weights are the first's, moved by a tap: their sums are the same,
          // as those of a convolution are.
          std::copy_n(w.data() + (t + 1) % taps * channels, channels,
                      w.data() + (taps + t) * channels);
          pixels.push_back(x.data() + t * channels);
        }
        for (int64_t t = 0; t < 2 * taps; ++t) weights.push_back(w.data() + t * channels);
        weights[1] = weights[taps] = nullptr;
        const auto sum_of = [&](int64_t result, int64_t c) {
          int sum = 0;
          for (int64_t t = 0; t < taps; ++t) {
            const int8_t* tap = weights[result * taps + t];
            sum += tap == nullptr ? 0 : tap[c];
          }
          return sum;
        };
        const auto ordered = DepthwiseInt8Weights(weights, channels);
        const int64_t blocks = (channels + kDepthwiseInt8Block - 1) / kDepthwiseInt8Block;
        std::vector<int32_t> start(blocks * kDepthwiseInt8Block);
        std::vector<float> scales(start.size());
        std::vector<int> bias(channels);
        for (int64_t c = 0; c < channels; ++c) {
          ASSERT_EQ(sum_of(0, c), sum_of(1, c));
          bias[c] = static_cast<int>(Random()() % 2000) - 1000;
          const int64_t place = DepthwiseInt8Place(c, channels);
          start[place] = bias[c] - static_cast<int>(128 + x_zero) * sum_of(0, c);
          scales[place] = c % 2 == 0 ? 1.0f / 512 : 1.0f / 128;
        }
        DepthwiseInt8Layer layer;
        layer.channels = channels, layer.groups = groups, layer.weights = ordered.data();
        layer.start = start.data(), layer.scales = scales.data();
        layer.zero = 2, layer.low = -120, layer.high = 127;
        layer.x_unsigned = x_unsigned, layer.y_unsigned = y_unsigned;
        layer.swish = swish, layer.steps = {!floats, 3, -20, -120, 127};
        std::vector<int8_t> y(2 * pairs * channels + 1, 77);
        std::vector<float> y_floats(floats ? y.size() : 0, 77.0f);
        DepthwiseInt8Run run;
        run.taps = pixels.data(), run.pairs = pairs, run.tap_step = 2 * channels;
        run.y_step = 2 * channels, run.y0 = y.data(), run.y1 = y.data() + channels;
        if (floats) run.y0 = y_floats.data(), run.y1 = y_floats.data() + channels;
        run.first_block = 0, run.last_block = blocks;
        RunDepthwiseInt8(layer, run);
        for (int64_t i = 0; i < 2 * pairs * channels; ++i) {
          const int64_t c = i % channels, result = i / channels % 2, pair = i / channels / 2;
          int sum = bias[c];
          for (int64_t t = 0; t < taps; ++t) {
            const int8_t* tap = weights[result * taps + t];
            const int stored = pixels[t][pair * 2 * channels + c];
            const int pixel = x_unsigned ? static_cast<uint8_t>(stored) - 128 : stored;
            sum += tap == nullptr ? 0 : (pixel - static_cast<int>(x_zero)) * tap[c];
          }
          const float scaled = static_cast<float>(sum) * (c % 2 == 0 ? 1.0f / 512 : 1.0f / 128);
          const int wanted = Rounded(scaled + 2, -120, 127);
          const int got = y_unsigned ? static_cast<uint8_t>(y[i]) - 128 : y[i];
          if (swish) {
            CheckSwish(layer.steps, scaled, floats ? y_floats[i] : 0, got);
            if (HasFatalFailure()) return;
            continue;
          }
          ASSERT_EQ(got, wanted) << channels << " channels, " << taps << " taps, form " << form
                                 << ", pair " << pair << ", result " << result << ", " << c;
        }
        ASSERT_EQ(floats ? y_floats.back() : y.back(), 77);
      }
    }
  }
}

TEST(IsaInt8, SwishTiles) {
  if (!MultipliesBytes()) GTEST_SKIP() << "no dot products of bytes; tiles of int8 are not tested";
  constexpr int64_t kLanes = kInt8TileLanes;
  for (int pixels = 1; pixels <= kInt8TilePixels; ++pixels) {
    for (int vecs = 1; vecs <= kInt8TileVecs; ++vecs) {
      for (const int64_t groups : {0, 1, 5}) {
        for (const int64_t columns : {int64_t{1}, int64_t{7}, kLanes}) {
          const int64_t width = vecs * kLanes, written = width - kLanes + columns;
          AtTheEdge<uint8_t> x(Anything<uint8_t>(pixels * groups * 4));
          AtTheEdge<int8_t> w(Anything<int8_t>(groups * width * 4));
          std::vector<const uint8_t*> at;
          for (int p = 0; p < pixels; ++p) at.push_back(x.data() + p * groups * 4);
          std::vector<int32_t> start(width);
          for (int32_t& b : start) b = static_cast<int32_t>(Random()() % 40000) - 20000;
          std::vector<float> scales = Floats(width, 1e-4f, 1e-3f);
          if (columns == 7) scales[0] = kNaN;
          Int8Tile tile;
          tile.pixels = at.data(), tile.groups = groups, tile.weights = w.data();
          tile.start = start.data(), tile.scales = scales.data(), tile.y_step = written + 1;
          tile.last = static_cast<uint16_t>((1u << columns) - 1);
          for (const bool bytes : {false, true}) {
            tile.steps = {bytes, 7.5f, -20, -100, 127};
            std::vector<float> floats(pixels * tile.y_step, 77.0f);
            std::vector<int8_t> narrow(floats.size(), 77);
            tile.y = bytes ? static_cast<void*>(narrow.data()) : floats.data();
            SwishInt8Tile(pixels, vecs)(tile);
            for (int64_t i = 0; i < pixels * tile.y_step; ++i) {
              const int64_t p = i / tile.y_step, c = i % tile.y_step;
              if (c == written) {
                ASSERT_EQ(bytes ? narrow[i] : floats[i], 77);
                continue;
              }
              int32_t sum = start[c];
              for (int64_t k = 0; k < groups * 4; ++k) {
                sum += at[p][k] * w.data()[(k / 4 * width + c) * 4 + k % 4];
              }
              if (std::isnan(scales[c])) {
                ASSERT_TRUE(bytes ? narrow[i] == -100 : std::isnan(floats[i]));
                continue;
              }
              CheckSwish(tile.steps, double{scales[c]} * sum, floats[i], narrow[i]);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(IsaPeak, Runs) {
  EXPECT_GT(RunPeak(PeakOp::kFloat, 10), 0);
  EXPECT_EQ(RunPeak(PeakOp::kInt8, 10) > 0, MultipliesBytes());
  RunPeak(PeakOp::kBfloat16, 10);
  // Tiles do more in a pass than twelve dot products of vectors: what they reach is the peak.
  const bool wide = RunPeak(PeakOp::kInt8, 10) > 0;
  if (wide && CpuHas(CpuFeature::kTilesOfBytes)) {
    EXPECT_GT(RunPeak(PeakOp::kInt8, 10), 10 * 12 * 64 * 2);
  }
  if (wide && CpuHas(CpuFeature::kTilesOfBfloat16)) {
    EXPECT_GT(RunPeak(PeakOp::kBfloat16, 10), 10 * 12 * 32 * 2);
  }
  alignas(64) static uint64_t words[256];
  EXPECT_EQ(ReadAll(words, sizeof(words)), 0u);
  for (uint64_t& word : words) {
    word = 1;
    EXPECT_NE(ReadAll(words, sizeof(words)), 0u);
    word = 0;
  }
}

}  // namespace
}  // namespace smelt
