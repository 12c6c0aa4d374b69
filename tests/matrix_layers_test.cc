// Layers by products of matrices beside plain sums: integers, and bfloat16 numbers whose sums are
// exact. Inputs end where a page does, so that nothing behind them is read.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "smelt/base/team.h"
#include "smelt/kernels/nn/matrix_bfloat16.h"
#include "smelt/kernels/nn/matrix_int8.h"
#include "smelt/tensor/float16.h"
#include "tests/isa/rows_of.h"
#include "tests/window_draw.h"

namespace smelt::nn {
namespace {

constexpr char kNoMatrices[] = "the processor multiplies no such matrices";

Tensor Constant(Dtype dtype, const Dims& dims, const void* numbers) {
  auto t = Tensor::Make(dtype, *Shape::Make(dims), HeapAllocator());
  std::memcpy(t->raw(), numbers, t->bytes());
  return *std::move(t);
}

std::vector<int64_t> PlainSums(const ConvProblem& p, const std::vector<int8_t>& x,
                               const std::vector<int8_t>& w, int32_t zero) {
  std::vector<int64_t> sums;
  for (int64_t i = 0; i < p.output.num_elements(); ++i) {
    sums.push_back(PlainSum(p, x, w, zero, i / p.out_depth, i % p.out_depth));
  }
  return sums;
}

template <typename T>
std::vector<T> RunLayer(const BoundKernel& layer, const std::vector<T>& x,
                        const std::vector<T>& addend, int64_t results, bool in_place) {
  AtTheEdge<T> input(x), added(addend);
  std::vector<T> out = in_place ? addend : std::vector<T>(static_cast<size_t>(results), T{77});
  AtTheEdge<T> y(out);
  std::vector<uint64_t> scratch(layer.scratch_bytes() / 8 + 1, ~uint64_t{0});
  const void* inputs[] = {input.data(), in_place ? y.data() : added.data()};
  void* outputs[] = {y.data()};
  EXPECT_TRUE(layer.Run(inputs, outputs, scratch.data()).ok());
  return {y.data(), y.data() + results};
}

// Signed and unsigned, with a sum and without.
void CheckInt8Layer(MatrixInt8& kept, const ConvProblem& p, const Int8Window& window,
                    const Tensor& weights, const std::vector<int8_t>& w, WindowDraw& draw) {
  const auto zero = static_cast<int32_t>(draw.From(-128, 127));
  const int64_t n = p.output.num_elements();
  const std::vector<int8_t> x = draw.Bytes(p.batch * p.in[0] * p.in[1] * p.in_depth);
  const std::vector<int8_t> more = draw.Bytes(n);
  std::vector<int32_t> bias(static_cast<size_t>(p.out_depth));
  for (int32_t& b : bias) b = static_cast<int32_t>(draw.From(-9999, 9999));
  const std::vector<float> scales = {0x1p-10F};
  const auto flipped = [](std::vector<int8_t> numbers, bool flips) {
    for (int8_t& b : numbers) b = static_cast<int8_t>(flips ? b ^ 0x80 : b);
    return numbers;
  };
  const std::vector<int64_t> sums = PlainSums(p, x, w, zero);
  for (const bool x_unsigned : {false, true}) {
    for (const bool adds : {false, true}) {
      PairsInt8Steps steps;
      steps.bias = bias.data();
      steps.scales = scales;
      steps.to_int8 = true;
      steps.numbers.zero = 3;
      steps.numbers.low = adds ? -128 : -20;
      steps.numbers.high = adds ? 100 : 127;
      steps.numbers.flip = adds ? 0x80 : 0;
      steps.numbers.addend_zero = 5;
      steps.numbers.addend_scale = 0.25F;
      steps.numbers.addend_flip = adds ? 0x80 : 0;
      if (adds) steps.steps.push_back({.kind = PairsInt8Steps::Step::Kind::kAddInt8, .input = 1});
      MatrixInt8 kept;
      const auto layer =
          kept.Bind(window, weights, false, zero + (x_unsigned ? 128 : 0), x_unsigned, steps);
      ASSERT_TRUE(layer.ok() && *layer != nullptr) << layer.status();
      const bool in_place = adds && x_unsigned;
      const std::vector<int8_t> y =
          RunLayer(**layer, flipped(x, x_unsigned), flipped(more, adds), n, in_place);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t u = i % p.out_depth;
        const int64_t sum = sums[static_cast<size_t>(i)] + bias[static_cast<size_t>(u)];
        float v = static_cast<float>(sum) * 0x1p-10F + 3;
        if (adds) v += static_cast<float>(more[static_cast<size_t>(i)] - 5) * 0.25F;
        v = std::nearbyint(std::clamp(v, steps.numbers.low, steps.numbers.high));
        const auto got = static_cast<int8_t>(y[static_cast<size_t>(i)] ^ (adds ? 0x80 : 0));
        ASSERT_EQ(got, v) << i << (adds ? " with a sum" : "") << (x_unsigned ? " unsigned" : "");
      }
    }
  }
}

void CheckInt8(const ConvProblem& p, const Int8Window& window, WindowDraw& draw) {
  const std::vector<int8_t> w = draw.Bytes(p.kernel[0] * p.kernel[1] * p.in_depth * p.out_depth);
  MatrixInt8 kept;
  const Tensor weights =
      Constant(Dtype::kInt8, {p.kernel[0], p.kernel[1], p.in_depth, p.out_depth}, w.data());
  CheckInt8Layer(kept, p, window, weights, w, draw);
}

// Of a pixel that is no number, windows with it have none.
void CheckBfloat16(const ConvProblem& p, WindowDraw& draw) {
  const int64_t n = p.output.num_elements();
  std::vector<int8_t> x(static_cast<size_t>(p.batch * p.in[0] * p.in[1] * p.in_depth));
  std::vector<int8_t> w(static_cast<size_t>(p.kernel[0] * p.kernel[1] * p.in_depth * p.out_depth));
  std::vector<int8_t> more(static_cast<size_t>(n)), marks(x.size(), 0);
  for (auto* numbers : {&x, &w, &more}) {
    for (int8_t& b : *numbers) b = static_cast<int8_t>(draw.From(-4, 4));
  }
  const std::vector<int8_t> ones(w.size(), 1);
  const auto narrow = [](const std::vector<int8_t>& numbers) {
    std::vector<uint16_t> bits;
    for (const int8_t b : numbers) bits.push_back(Bfloat16(static_cast<float>(b)).bits);
    return bits;
  };
  std::vector<uint16_t> numbers = narrow(x);
  const auto broken = static_cast<size_t>(draw.From(0, std::ssize(x) - 1));
  numbers[broken] = Bfloat16(std::numeric_limits<float>::quiet_NaN()).bits;
  marks[broken] = 1;
  std::vector<float> bias(static_cast<size_t>(p.out_depth)), factors(bias.size());
  for (float& b : bias) b = static_cast<float>(draw.From(-9, 9));
  for (float& f : factors) f = static_cast<float>(draw.From(1, 2));
  const Tensor filter = Constant(
      Dtype::kBfloat16, {p.kernel[0], p.kernel[1], p.in_depth, p.out_depth}, narrow(w).data());
  const std::vector<int64_t> sums = PlainSums(p, x, w, 0),
                             broken_ones = PlainSums(p, marks, ones, 0);
  for (const bool adds : {false, true}) {
    FusedOps ops;
    ops.steps.push_back({.kind = FusedStep::Kind::kBias, .arg = ops.num_args++});
    if (adds) ops.steps.push_back({.kind = FusedStep::Kind::kAdd, .arg = ops.num_args++});
    ops.steps.push_back({.activation = Activation::kRelu});
    MatrixBfloat16 kept;
    const auto layer = kept.Bind(p, filter, factors, bias.data(), adds ? 1 : -1, ops);
    ASSERT_TRUE(layer.ok() && *layer != nullptr) << layer.status();
    const std::vector<uint16_t> y = RunLayer(**layer, numbers, narrow(more), n, adds);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t u = i % p.out_depth;
      const float got =
          std::bit_cast<float>(static_cast<uint32_t>(y[static_cast<size_t>(i)]) << 16);
      if (broken_ones[static_cast<size_t>(i)] != 0) {
        ASSERT_TRUE(std::isnan(got)) << got << " at " << i;
        continue;
      }
      float v = static_cast<float>(sums[static_cast<size_t>(i)]) * factors[static_cast<size_t>(u)] +
                bias[static_cast<size_t>(u)];
      if (adds) v += static_cast<float>(more[static_cast<size_t>(i)]);
      v = static_cast<float>(Bfloat16(std::max(v, 0.0F)));
      ASSERT_EQ(got, v) << i << (adds ? " with a sum" : "");
    }
  }
}

TEST(MatrixLayers, WindowsOfAllKinds) {
  if (IsaMatrixTiles().run_int8 == nullptr) GTEST_SKIP() << kNoMatrices;
  WindowDraw draw;
  int checked = 0;
  for (int i = 0; i < 400; ++i) {
    const auto p = draw.Window(i);
    if (!p.ok() || p->output.num_elements() == 0) continue;
    const Int8Window window = Int8Window::Of(*p);
    SCOPED_TRACE(absl::StrCat(i, ": ", TextOf(*p)));
    SetThreads(i % 3 + 1);
    if (MatrixInt8::Suits(window)) {
      ASSERT_NO_FATAL_FAILURE(CheckInt8(*p, window, draw));
      ++checked;
    }
    if (MatrixBfloat16::Suits(*p)) {
      ASSERT_NO_FATAL_FAILURE(CheckBfloat16(*p, draw));
    }
  }
  SetThreads(1);
  EXPECT_GT(checked, 100);
}

// Rows about those of registers and blocks, sums about those of steps; lines that are short, or
// multiplied where they lie; bands of lines, and several images in one.
TEST(MatrixLayers, Sizes) {
  if (IsaMatrixTiles().run_int8 == nullptr) GTEST_SKIP() << kNoMatrices;
  WindowDraw draw;
  std::vector<std::tuple<Dims, Dims, int>> all;
  for (const int64_t rows : {16, 31, 32, 33, 48, 49, 64, 65, 80, 95, 97, 128}) {
    for (const int64_t depth : {4, 24, 63, 64, 65, 96, 128}) {
      all.emplace_back(Dims{1, rows, 1, depth}, Dims{1, 1, depth, rows % 48 + 1}, 1);
    }
  }
  all.emplace_back(Dims{1, 1100, 1, 24}, Dims{1, 1, 24, 33}, 1);
  all.emplace_back(Dims{1, 33, 33, 3}, Dims{7, 7, 3, 40}, 2);
  // Three colors: lines of windows multiplied where they lie, in full rows of registers and others.
  all.emplace_back(Dims{2, 61, 63, 3}, Dims{7, 7, 3, 37}, 2);
  all.emplace_back(Dims{3, 40, 30, 3}, Dims{5, 5, 3, 16}, 1);
  all.emplace_back(Dims{1, 33, 32, 3}, Dims{7, 1, 3, 9}, 2);
  all.emplace_back(Dims{1, 33, 32, 3}, Dims{4, 8, 3, 9}, 3);
  all.emplace_back(Dims{2, 40, 37, 3}, Dims{3, 3, 3, 24}, 2);
  all.emplace_back(Dims{3, 7, 7, 128}, Dims{3, 3, 128, 33}, 1);
  all.emplace_back(Dims{1, 70, 60, 192}, Dims{3, 3, 192, 2}, 1);
  all.emplace_back(Dims{2, 50, 64, 64}, Dims{3, 3, 64, 5}, 2);
  for (const auto& [in, filter, stride] : all) {
    const auto p = SameWindow(Shape(in), Shape(filter), stride);
    ASSERT_TRUE(p.ok()) << p.status();
    SCOPED_TRACE(TextOf(*p));
    SetThreads(static_cast<int>(in[1] % 3) + 1);
    ASSERT_NO_FATAL_FAILURE(CheckInt8(*p, Int8Window::Of(*p), draw));
    if (MatrixBfloat16::Suits(*p)) {
      ASSERT_NO_FATAL_FAILURE(CheckBfloat16(*p, draw));
    }
  }
  SetThreads(1);
}

// A node's weights are packed anew where images of another size want it.
TEST(MatrixLayers, SizesOfOneNode) {
  if (IsaMatrixTiles().run_int8 == nullptr) GTEST_SKIP() << kNoMatrices;
  WindowDraw draw;
  MatrixInt8 kept;
  const std::vector<int8_t> w = draw.Bytes(7 * 7 * 3 * 5);
  const Tensor weights = Constant(Dtype::kInt8, {7, 7, 3, 5}, w.data());
  for (const int64_t side : {96, 10, 96}) {
    const auto p = SameWindow(Shape({1, side, side, 3}), weights.shape(), 2);
    ASSERT_TRUE(p.ok()) << p.status();
    ASSERT_NO_FATAL_FAILURE(CheckInt8Layer(kept, *p, Int8Window::Of(*p), weights, w, draw));
  }
}

// Sums that could leave what float or int32 hold are not taken.
TEST(MatrixLayers, LargeSums) {
  if (IsaMatrixTiles().run_int8 == nullptr) GTEST_SKIP() << kNoMatrices;
  const Int8Window window = Int8Window::OfRows(32, 64, 1);
  const std::vector<int8_t> ones(64, 127);
  const Tensor weights = Constant(Dtype::kInt8, {64, 1}, ones.data());
  const int32_t bias = 0, most = std::numeric_limits<int32_t>::max();
  for (const auto& [scale, begin] : {std::pair(1.0F, &most), std::pair(0x1p12F, &bias),
                                     std::pair(std::numeric_limits<float>::infinity(), &bias)}) {
    const std::vector<float> scales = {scale};
    PairsInt8Steps steps;
    steps.bias = begin;
    steps.scales = scales;
    steps.to_int8 = true;
    MatrixInt8 kept;
    const auto layer = kept.Bind(window, weights, false, 0, false, steps);
    ASSERT_TRUE(layer.ok());
    EXPECT_EQ(*layer, nullptr) << scale;
  }
}

}  // namespace
}  // namespace smelt::nn
