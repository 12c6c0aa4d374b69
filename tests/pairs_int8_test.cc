// Int8 layers by pairs of 16 bits beside plain sums: they are exact, so there is nothing between.
#include "smelt/kernels/nn/pairs_int8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "smelt/base/team.h"
#include "tests/window_draw.h"

namespace smelt::nn {
namespace {

// Both results of a layer, the float one of scale 1, where no sum is too large for it.
void CheckPairs(const ConvProblem& p, WindowDraw& draw) {
  const Int8Window window = Int8Window::Of(p);
  if (WhyNoPairsInt8(window) != nullptr) return;
  const auto zero = static_cast<int32_t>(draw.From(-128, 127));
  const std::vector<int8_t> x = draw.Bytes(p.batch * p.in[0] * p.in[1] * p.in_depth);
  const std::vector<int8_t> w = draw.Bytes(p.kernel[0] * p.kernel[1] * p.filter_in * p.out_depth);
  std::vector<int32_t> bias(static_cast<size_t>(p.out_depth));
  for (int32_t& b : bias) b = static_cast<int32_t>(draw.From(-9999, 9999));
  const auto weights = std::make_shared<const PairsInt8Weights>(window, w.data(), false);
  PairsInt8Steps steps;
  const std::vector<float> one = {1}, scales(bias.size(), 0x1p-10F);
  steps.bias = bias.data();
  steps.scales = one;
  const PairsInt8 to_float(weights, window, zero, steps);
  steps.scales = scales;
  steps.to_int8 = true;
  steps.numbers.zero = 3;
  const PairsInt8 to_int8(weights, window, zero, steps);
  const int64_t n = p.output.num_elements();
  std::vector<float> floats(static_cast<size_t>(n));
  std::vector<int8_t> bytes(static_cast<size_t>(n));
  const void* inputs[] = {x.data()};
  std::vector<int16_t> scratch(to_float.scratch_bytes() / 2, 99);
  to_float.Run(inputs, floats.data(), scratch.data());
  to_int8.Run(inputs, bytes.data(), scratch.data());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t u = i % p.out_depth;
    const int64_t sum = PlainSum(p, x, w, zero, i / p.out_depth, u) + bias[static_cast<size_t>(u)];
    ASSERT_EQ(floats[static_cast<size_t>(i)], static_cast<float>(sum)) << i;
    const float v = std::clamp(static_cast<float>(sum) * 0x1p-10F + 3, -128.0F, 127.0F);
    ASSERT_EQ(bytes[static_cast<size_t>(i)], std::nearbyint(v)) << i;
  }
}

TEST(PairsInt8, WindowsOfAllKinds) {
  if (WhyNoPairsInt8(Int8Window()) != nullptr) GTEST_SKIP() << WhyNoPairsInt8(Int8Window());
  WindowDraw draw;
  for (int i = 0; i < 400; ++i) {
    const auto p = draw.Window(i);
    if (!p.ok() || p->output.num_elements() == 0) continue;
    SCOPED_TRACE(absl::StrCat(i, ": ", TextOf(*p)));
    SetThreads(i % 3 + 1);
    ASSERT_NO_FATAL_FAILURE(CheckPairs(*p, draw));
  }
  SetThreads(1);
}

// More numbers than a band has: lines of one image, and several images at once.
TEST(PairsInt8, Bands) {
  if (WhyNoPairsInt8(Int8Window()) != nullptr) GTEST_SKIP() << WhyNoPairsInt8(Int8Window());
  WindowDraw draw;
  for (const auto& [in, filter, stride] :
       {std::tuple(Dims{2, 40, 40, 150}, Dims{3, 3, 150, 5}, 1),
        std::tuple(Dims{1, 70, 70, 60}, Dims{3, 3, 1, 60}, 2),
        std::tuple(Dims{7, 20, 20, 100}, Dims{2, 2, 100, 3}, 2),
        std::tuple(Dims{3, 30, 30, 100}, Dims{1, 1, 100, 9}, 1),
        std::tuple(Dims{3, 31, 31, 100}, Dims{1, 1, 100, 9}, 2)}) {
    const auto p = SameWindow(Shape(in), Shape(filter), stride);
    ASSERT_TRUE(p.ok()) << p.status();
    SCOPED_TRACE(Shape(in).ToString());
    ASSERT_NO_FATAL_FAILURE(CheckPairs(*p, draw));
  }
}

// What follows a product of a turned matrix, whose numbers are small enough for all to be exact.
TEST(PairsInt8, StepsBehindProducts) {
  if (WhyNoPairsInt8(Int8Window()) != nullptr) GTEST_SKIP() << WhyNoPairsInt8(Int8Window());
  using Step = PairsInt8Steps::Step;
  using Kind = Step::Kind;
  WindowDraw draw;
  const Step relu{.act = UnaryF32::kRelu}, relu6{.act = UnaryF32::kRelu6};
  const Step channels{.kind = Kind::kAddChannels, .input = 1};
  const Step floats{.kind = Kind::kAddFloats, .input = 2};
  const Step bytes{.kind = Kind::kAddInt8, .input = 3};
  const std::vector<std::vector<Step>> all = {
      {},         {relu},         {relu6},          {bytes},        {bytes, relu},    {relu, bytes},
      {channels}, {floats, relu}, {relu, channels}, {bytes, relu6}, {channels, bytes}};
  for (const int64_t rows : {1, 5, 150}) {
    const int64_t depth = 21, units = 37, n = rows * units;
    const Int8Window window = Int8Window::OfRows(rows, depth, units);
    const std::vector<int8_t> x = draw.Bytes(rows * depth), w = draw.Bytes(units * depth);
    const std::vector<int8_t> more = draw.Bytes(n);
    std::vector<int32_t> bias(static_cast<size_t>(units));
    std::vector<float> scales(bias.size()), row(bias.size()), whole(static_cast<size_t>(n));
    for (int32_t& b : bias) b = static_cast<int32_t>(draw.From(-999, 999));
    for (float& f : scales) f = draw.From(0, 1) == 0 ? 0x1p-11F : 0x1p-12F;
    for (float& f : row) f = static_cast<float>(draw.From(-99, 99)) / 8;
    for (float& f : whole) f = static_cast<float>(draw.From(-99, 99)) / 4;
    const auto weights = std::make_shared<const PairsInt8Weights>(window, w.data(), true);
    const void* inputs[] = {x.data(), row.data(), whole.data(), more.data()};
    for (const std::vector<Step>& some : all) {
      for (const bool to_int8 : {false, true}) {
        PairsInt8Steps steps;
        steps.scales = scales;
        steps.bias = bias.data();
        steps.steps = some;
        steps.to_int8 = to_int8;
        steps.factor = 4;
        steps.numbers.zero = -9;
        steps.numbers.low = -100;
        steps.numbers.addend_zero = 3;
        steps.numbers.addend_scale = 0.125F;
        const PairsInt8 layer(weights, window, 11, steps);
        std::vector<float> y(static_cast<size_t>(n));
        std::vector<int16_t> scratch(layer.scratch_bytes() / 2);
        layer.Run(inputs, y.data(), scratch.data());
        for (int64_t i = 0; i < n; ++i) {
          const int64_t r = i / units, u = i % units;
          int64_t sum = bias[static_cast<size_t>(u)];
          for (int64_t k = 0; k < depth; ++k) {
            sum += int64_t{x[static_cast<size_t>(r * depth + k)] - 11} *
                   w[static_cast<size_t>(u * depth + k)];
          }
          float v = static_cast<float>(sum) * scales[static_cast<size_t>(u)];
          for (const Step& s : some) {
            if (s.kind == Kind::kAddChannels) v += row[static_cast<size_t>(u)];
            if (s.kind == Kind::kAddFloats) v += whole[static_cast<size_t>(i)];
            if (s.kind == Kind::kAddInt8) {
              v += static_cast<float>(more[static_cast<size_t>(i)] - 3) * 0.125F;
            }
            if (s.kind != Kind::kActivation) continue;
            v = std::clamp(v, 0.0F, s.act == UnaryF32::kRelu6 ? 6.0F : 1e9F);
          }
          if (to_int8) {
            const float q = std::nearbyint(std::clamp(v * 4 - 9, -100.0F, 127.0F));
            ASSERT_EQ(reinterpret_cast<const int8_t*>(y.data())[i], q) << v << " at " << i;
          } else {
            ASSERT_EQ(y[static_cast<size_t>(i)], v) << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace smelt::nn
