// Layers of TensorFlow Lite's int8 numbers, by whatever loops they are bound to, beside plain sums
// that are scaled and rounded as XNNPACK does it: the zero point is added behind the rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/base/team.h"
#include "smelt/kernels/lite/bind_int8.h"
#include "smelt/kernels/lite/int16_layer.h"
#include "smelt/kernels/lite/int8_matmul.h"
#include "smelt/kernels/lite/transposed_phases.h"
#include "tests/window_draw.h"

namespace smelt::lite {
namespace {

using nn::ConvProblem;
using nn::Int8Window;
using nn::WindowDraw;

// Weights of a unit behind one another, as the format has them; depthwise ones lie as they do.
Tensor WeightsOf(const ConvProblem& p, bool depthwise, const std::vector<int8_t>& w) {
  const int64_t units = p.out_depth, of_unit = std::ssize(w) / units;
  auto t = Tensor::Make(Dtype::kInt8, *Shape::Make(Dims{std::ssize(w)}), HeapAllocator());
  auto* to = t->data<int8_t>();
  for (int64_t i = 0; i < of_unit; ++i) {
    for (int64_t u = 0; u < units; ++u) {
      to[depthwise ? i * units + u : u * of_unit + i] = w[static_cast<size_t>(i * units + u)];
    }
  }
  return *std::move(t);
}

// `halves`: scales of which many products lie between two integers.
void Check(const ConvProblem& p, WindowDraw& draw, bool halves) {
  const Int8Window window = Int8Window::Of(p);
  const std::vector<int8_t> w = draw.Bytes(p.kernel[0] * p.kernel[1] * p.filter_in * p.out_depth);
  const std::vector<int8_t> x = draw.Bytes(p.batch * p.in[0] * p.in[1] * p.in_depth);
  std::vector<int32_t> bias(static_cast<size_t>(p.out_depth));
  for (int32_t& b : bias) b = static_cast<int32_t>(draw.From(-9999, 9999));
  std::vector<float> scales(bias.size());
  for (float& s : scales) {
    s = halves ? 0x1p-9F : static_cast<float>(draw.From(1, 9999)) * 1e-7F;
  }
  Int8Numbers numbers;
  numbers.in_zero = static_cast<int32_t>(draw.From(-128, 127));
  numbers.out_zero = static_cast<int32_t>(draw.From(-128, 127));
  numbers.scales = scales;
  if (draw.From(0, 3) != 0) numbers.bias = bias.data();
  if (draw.From(0, 1) != 0) {
    numbers.range.low = static_cast<int32_t>(draw.From(-128, 0));
    numbers.range.high = static_cast<int32_t>(draw.From(1, 127));
  } else {
    numbers.range.low = -128, numbers.range.high = 127;
  }
  nn::MatrixInt8 matrices;
  const Tensor weights = WeightsOf(p, window.depthwise, w);
  const auto layer = BindInt8(window, numbers, weights, matrices);
  ASSERT_TRUE(layer.ok()) << layer.status();
  std::vector<int8_t> y(static_cast<size_t>(p.output.num_elements()));
  std::vector<uint64_t> scratch((*layer)->scratch_bytes() / 8 + 1, ~uint64_t{0});
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  ASSERT_TRUE((*layer)->Run(inputs, outputs, scratch.data()).ok());
  for (int64_t i = 0; i < std::ssize(y); ++i) {
    const auto u = static_cast<size_t>(i % p.out_depth);
    const int64_t sum = PlainSum(p, x, w, numbers.in_zero, i / p.out_depth, i % p.out_depth) +
                        (numbers.bias == nullptr ? 0 : bias[u]);
    const float v = static_cast<float>(static_cast<int32_t>(sum)) * scales[u];
    const float wanted =
        std::clamp(std::nearbyint(v) + static_cast<float>(numbers.out_zero),
                   static_cast<float>(numbers.range.low), static_cast<float>(numbers.range.high));
    ASSERT_EQ(y[static_cast<size_t>(i)], wanted) << i << ": " << v << " and " << numbers.out_zero;
  }
}

TEST(LiteInt8, WindowsOfAllKinds) {
  WindowDraw draw;
  for (int i = 0; i < 200; ++i) {
    const auto p = draw.Window(i);
    if (!p.ok() || p->output.num_elements() == 0) continue;
    SCOPED_TRACE(absl::StrCat(i, ": ", TextOf(*p)));
    SetThreads(i % 3 + 1);
    ASSERT_NO_FATAL_FAILURE(Check(*p, draw, i % 2 == 0));
  }
  SetThreads(1);
}

// Depthwise ones with as many units as channels: fewer than a register and more, odd rows.
TEST(LiteInt8, DepthwiseWindows) {
  WindowDraw draw;
  for (const int64_t channels : {5, 16, 24, 33, 64, 96, 130}) {
    for (const int64_t stride : {1, 2}) {
      nn::ConvAttrs attrs;
      attrs.padding = nn::Padding::kSame;
      attrs.strides = {stride, stride};
      attrs.dilations = {1, 1};
      attrs.depthwise = true;
      const auto p =
          nn::MakeConvProblem(attrs, Shape({2, 7, 9, channels}), Shape({3, 3, channels, 1}));
      ASSERT_TRUE(p.ok()) << p.status();
      SCOPED_TRACE(TextOf(*p));
      SetThreads(static_cast<int>(stride));
      ASSERT_NO_FATAL_FAILURE(Check(*p, draw, channels % 2 == 0));
    }
  }
  SetThreads(1);
}

// Results beyond what int32 holds are bounds, and so is one of a factor that is infinite.
TEST(LiteInt8, LargeFactors) {
  constexpr int64_t kRows = 32, kDepth = 64;
  const Int8Window window = Int8Window::OfRows(kRows, kDepth, 3);
  auto weights = Tensor::Make(Dtype::kInt8, *Shape::Make(Dims{3, kDepth}), HeapAllocator());
  std::fill_n(weights->data<int8_t>(), 2 * kDepth, int8_t{127});
  std::fill_n(weights->data<int8_t>() + 2 * kDepth, kDepth, int8_t{-127});
  for (const float scale : {0x1p14F, std::numeric_limits<float>::infinity()}) {
    const std::vector<float> scales = {1e-4F, scale, scale};
    Int8Numbers numbers;
    numbers.out_zero = 7;
    numbers.scales = scales;
    numbers.range.low = -100, numbers.range.high = 101;
    nn::MatrixInt8 matrices;
    const auto layer = BindInt8(window, numbers, *weights, matrices);
    ASSERT_TRUE(layer.ok()) << layer.status();
    const std::vector<int8_t> x(kRows * kDepth, 127);
    std::vector<int8_t> y(kRows * 3);
    std::vector<uint64_t> scratch((*layer)->scratch_bytes() / 8 + 1);
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data()};
    ASSERT_TRUE((*layer)->Run(inputs, outputs, scratch.data()).ok());
    EXPECT_EQ(y[0], 101);
    EXPECT_EQ(y[1], 101);
    EXPECT_EQ(y[2], -100);
  }
}

// int16 numbers at their ends, whose sums leave 32 bits; factors that TensorFlow Lite shortens, and
// all bits of them.
TEST(LiteInt16, WindowsOfAllKinds) {
  WindowDraw draw;
  int checked = 0, beyond = 0;
  for (int i = 0; i < 200; ++i) {
    const auto p = draw.Window(i);
    if (!p.ok() || p->output.num_elements() == 0) continue;
    SCOPED_TRACE(absl::StrCat(i, ": ", TextOf(*p)));
    const Int8Window window = Int8Window::Of(*p);
    if (!Int16Layer::Suits(window)) continue;
    ++checked;
    std::vector<int8_t> w = draw.Bytes(p->kernel[0] * p->kernel[1] * p->filter_in * p->out_depth);
    const bool ends = i % 11 == 0;  // of many channels
    if (ends) std::ranges::fill(w, int8_t{-128});
    std::vector<int16_t> x(static_cast<size_t>(p->batch * p->in[0] * p->in[1] * p->in_depth));
    for (int16_t& v : x) {
      v = static_cast<int16_t>(ends || draw.From(0, 2) == 0 ? -32768 : draw.From(-32768, 32767));
    }
    std::vector<int64_t> bias(static_cast<size_t>(p->out_depth));
    for (int64_t& b : bias) b = draw.From(-(int64_t{1} << 34), int64_t{1} << 34);
    std::vector<Factor> factors;
    std::vector<double> doubles;
    for (size_t u = 0; u < bias.size(); ++u) {
      doubles.push_back(std::ldexp(static_cast<double>(draw.From(1, 9999)) / 9999,
                                   static_cast<int>(draw.From(-24, 0))));
      factors.push_back(FactorOf(doubles.back()));
    }
    Int16Numbers numbers;
    numbers.factors = factors;
    if (i % 2 == 0) numbers.doubles = doubles;
    numbers.range.low = i % 3 == 0 ? 0 : -32768, numbers.range.high = 32767;
    if (i % 5 != 0) numbers.bias = bias.data();
    const Tensor weights = WeightsOf(*p, window.depthwise, w);
    SetThreads(i % 3 + 1);
    const Int16Layer layer(window, numbers, weights.data<int8_t>());
    std::vector<int16_t> y(static_cast<size_t>(p->output.num_elements()));
    std::vector<uint64_t> scratch(layer.scratch_bytes() / 8 + 1, ~uint64_t{0});
    layer.Run(x.data(), y.data(), scratch.data());
    for (int64_t k = 0; k < std::ssize(y); ++k) {
      const auto u = static_cast<size_t>(k % p->out_depth);
      const int64_t products = PlainSum(*p, x, w, 0, k / p->out_depth, k % p->out_depth);
      const int64_t sum = products + (numbers.bias == nullptr ? 0 : bias[u]);
      beyond += std::abs(products) > std::numeric_limits<int32_t>::max() ? 1 : 0;
      const int32_t v = i % 2 == 0 ? TimesInDouble(sum, doubles[u]) : Times(sum, factors[u]);
      ASSERT_EQ(y[static_cast<size_t>(k)], numbers.range.Clamp(v)) << k << ": " << sum;
    }
  }
  SetThreads(1);
  EXPECT_GT(checked, 100);
  EXPECT_GT(beyond, 100);
}

// Several products at once and one alone, of sizes beside those of tiles; both roundings.
TEST(LiteInt8, ComputedMatrices) {
  WindowDraw draw;
  for (int i = 0; i < 80; ++i) {
    const int64_t rows = draw.From(1, 70), depth = draw.From(1, 90), columns = draw.From(1, 80);
    const int64_t count = i % 4 == 0 ? 1 : draw.From(2, 5);
    const bool turned_a = i % 3 == 0, turned_b = i % 2 == 0;
    SCOPED_TRACE(absl::StrCat(i, ": ", count, " of ", rows, "x", depth, "x", columns));
    Int8MatmulNumbers numbers;
    numbers.in_float = i % 5 < 2;
    numbers.zero_a = static_cast<int32_t>(draw.From(-128, 127));
    numbers.zero_b = numbers.in_float ? 0 : static_cast<int32_t>(draw.From(-128, 127));
    numbers.zero_out = static_cast<int32_t>(draw.From(-128, 127));
    numbers.range.low = -100, numbers.range.high = 127;
    numbers.scale = 0x1p-9F;
    numbers.factor = FactorOf(static_cast<double>(draw.From(1, 999)) * 1e-6);
    const std::vector<int8_t> a = draw.Bytes(count * rows * depth);
    const std::vector<int8_t> b = draw.Bytes(count * depth * columns);
    std::vector<int8_t> y(static_cast<size_t>(count * rows * columns));
    SetThreads(i % 3 + 1);
    const Int8Matmul matmul(rows, depth, columns, turned_a, turned_b, numbers);
    matmul.Run(count, [&](int64_t k) {
      return Int8Matmul::Operands{a.data() + k * rows * depth, b.data() + k * depth * columns,
                                  y.data() + k * rows * columns};
    });
    for (int64_t at = 0; at < std::ssize(y); ++at) {
      const int64_t k = at / (rows * columns), r = at / columns % rows, c = at % columns;
      int32_t sum = 0;
      for (int64_t d = 0; d < depth; ++d) {
        const int64_t p = k * rows * depth + (turned_a ? d * rows + r : r * depth + d);
        const int64_t q = k * depth * columns + (turned_b ? c * depth + d : d * columns + c);
        sum += (a[static_cast<size_t>(p)] - numbers.zero_a) *
               (b[static_cast<size_t>(q)] - numbers.zero_b);
      }
      const int32_t v =
          numbers.in_float ? static_cast<int32_t>(std::nearbyint(static_cast<float>(sum) * 0x1p-9F))
                           : Times(sum, numbers.factor);
      ASSERT_EQ(y[static_cast<size_t>(at)], numbers.range.Clamp(v, numbers.zero_out)) << at;
    }
  }
  SetThreads(1);
}

// Transposed ones, beside what each pixel of the input adds to the output: strides above and below
// the window's size, remainders that no tap meets, sizes beyond what all windows cover.
TEST(LiteInt8, TransposedWindows) {
  WindowDraw draw;
  int checked = 0;
  for (int i = 0; i < 150; ++i) {
    LayerWindow s;
    s.kind = LayerKind::kTransposed;
    s.stride_h = draw.From(1, 3), s.stride_w = draw.From(1, 4);
    s.padding = i % 2 == 0 ? nn::Padding::kSame : nn::Padding::kValid;
    const Shape output({draw.From(1, 2), draw.From(1, 13), draw.From(1, 13), draw.From(1, 40)});
    const Shape filter({output[3], draw.From(1, 4), draw.From(1, 5), draw.From(1, 20)});
    const auto image = ImageOf(s, output, filter);
    if (!image.ok() || image->out_h < 1 || image->out_w < 1) continue;
    const Image& m = *image;
    const Shape in({m.batch, m.out_h, m.out_w, filter[3]});
    SCOPED_TRACE(absl::StrCat(i, ": ", in.ToString(), " by ", filter.ToString(), " to ",
                              output.ToString(), ", strides ", s.stride_h, " ", s.stride_w));
    const std::vector<int8_t> x = draw.Bytes(in.num_elements());
    auto w = Tensor::Make(Dtype::kInt8, filter, HeapAllocator());
    std::ranges::copy(draw.Bytes(filter.num_elements()), w->data<int8_t>());
    std::vector<int32_t> bias(static_cast<size_t>(output[3]));
    for (int32_t& b : bias) b = static_cast<int32_t>(draw.From(-999, 999));
    const std::vector<float> scales(bias.size(), 0x1p-8F);
    Int8Numbers numbers;
    numbers.in_zero = static_cast<int32_t>(draw.From(-128, 127));
    numbers.out_zero = static_cast<int32_t>(draw.From(-9, 9));
    numbers.scales = scales;
    numbers.bias = bias.data();
    numbers.range.low = -120, numbers.range.high = 127;
    const BoundTensor inputs[] = {
        {Dtype::kInt32, Shape({4})}, {Dtype::kInt8, filter, &*w}, {Dtype::kInt8, in}};
    SetThreads(i % 3 + 1);
    std::vector<std::unique_ptr<nn::MatrixInt8>> kept;
    const auto layer =
        BindPhases(s, inputs, {Dtype::kInt8, output},
                   [&](const Image&, const Int8Window& window, const Tensor& weights) {
                     kept.push_back(std::make_unique<nn::MatrixInt8>());
                     return BindInt8(window, numbers, weights, *kept.back());
                   });
    ASSERT_TRUE(layer.ok()) << layer.status();
    if (*layer == nullptr) continue;
    ++checked;
    std::vector<int64_t> sums(static_cast<size_t>(output.num_elements()));
    for (int64_t at = 0; at < in.num_elements(); ++at) {
      const int64_t c = at % in[3], column = at / in[3] % in[2];
      const int64_t line = at / in[3] / in[2] % in[1], b = at / in[3] / in[2] / in[1];
      for (int64_t tap = 0; tap < filter[1] * filter[2]; ++tap) {
        const int64_t y = line * s.stride_h - m.top + tap / filter[2];
        const int64_t z = column * s.stride_w - m.left + tap % filter[2];
        if (y < 0 || y >= output[1] || z < 0 || z >= output[2]) continue;
        for (int64_t u = 0; u < output[3]; ++u) {
          sums[static_cast<size_t>(((b * output[1] + y) * output[2] + z) * output[3] + u)] +=
              int64_t{x[static_cast<size_t>(at)] - numbers.in_zero} *
              w->data<int8_t>()[(u * filter[1] * filter[2] + tap) * filter[3] + c];
        }
      }
    }
    std::vector<int8_t> y(sums.size());
    std::vector<uint64_t> scratch((*layer)->scratch_bytes() / 8 + 1, ~uint64_t{0});
    const void* in_data[] = {nullptr, w->raw(), x.data()};
    void* out_data[] = {y.data()};
    ASSERT_TRUE((*layer)->Run(in_data, out_data, scratch.data()).ok());
    for (size_t k = 0; k < y.size(); ++k) {
      const auto sum = sums[k] + bias[k % bias.size()];
      const float wanted = std::clamp(
          std::nearbyint(static_cast<float>(sum) * 0x1p-8F) + static_cast<float>(numbers.out_zero),
          -120.0F, 127.0F);
      ASSERT_EQ(y[k], wanted) << k;
    }
  }
  SetThreads(1);
  EXPECT_GT(checked, 60);
}

}  // namespace
}  // namespace smelt::lite
