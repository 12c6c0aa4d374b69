// Convolutions and their transposes by tiles and planes of our own beside plain loops: every place
// of a window at a border, tiles that go on in the next line and image, channels that fill no
// vector.
#include "smelt/kernels/nn/tiled_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "smelt/base/team.h"
#include "smelt/kernels/nn/conv_reference.h"
#include "smelt/kernels/nn/planar_conv.h"
#include "smelt/kernels/nn/tiled_transpose.h"
#include "smelt/kernels/nn/winograd_conv.h"

namespace smelt::nn {
namespace {

class Draw {
 public:
  int64_t Of(std::initializer_list<int64_t> some) { return some.begin()[Below(some.size())]; }
  int64_t From(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(Below(static_cast<size_t>(most - least + 1)));
  }
  std::vector<float> Floats(int64_t n) {
    std::vector<float> some(static_cast<size_t>(n));
    for (float& f : some) f = static_cast<float>(From(-1000, 1000)) / 1000;
    return some;
  }
  Tensor Filled(const Shape& shape) {
    Tensor t = *Tensor::Make(Dtype::kFloat, shape);
    std::ranges::copy(Floats(shape.num_elements()), t.data<float>());
    return t;
  }

 private:
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  std::mt19937_64 random_{7};
};

// bias, a sum and Relu behind the layer: `own` makes what `plain` and these make.
void ExpectSteps(const Tensor& plain, const BoundKernel& own, const Tensor& x, const Tensor& more,
                 const std::vector<float>& bias, const std::string& what) {
  Tensor got = *Tensor::Make(Dtype::kFloat, plain.shape());
  const void* inputs[] = {x.raw(), more.raw()};
  void* outputs[] = {got.raw()};
  std::vector<float> scratch(own.scratch_bytes() / sizeof(float), NAN);
  ASSERT_TRUE(own.Run(inputs, outputs, scratch.data()).ok());
  for (int64_t n = 0; n < got.num_elements(); ++n) {
    const float sum =
        plain.data<float>()[n] + bias[static_cast<size_t>(n) % bias.size()] + more.data<float>()[n];
    ASSERT_NEAR(got.data<float>()[n], std::max(sum, 0.0F), 1e-4 + 1e-5 * std::abs(sum))
        << what << " at " << n;
  }
}

FusedOps BiasSumRelu() {
  using Kind = FusedStep::Kind;
  FusedOps steps;
  steps.steps = {{Kind::kBias}, {Kind::kAdd, Activation::kRelu, 1}, {Kind::kActivation}};
  return steps;
}

// Attributes and the shapes of an image and a filter, of windows of one pixel every fifth time.
struct Drawn {
  ConvAttrs attrs;
  Dims in, kernel;
  int64_t depth, channels;
  std::string Text() const { return Shape(in).ToString() + " by " + Shape(kernel).ToString(); }
};
Drawn DrawConv(Draw& draw, int i) {
  Drawn d;
  d.attrs.spatial = static_cast<int>(draw.From(2, 3));
  d.attrs.padding = static_cast<Padding>(draw.From(0, 2));
  d.in = {draw.From(1, 3)};
  for (int s = 0; s < d.attrs.spatial; ++s) {
    d.in.push_back(draw.From(1, 9));
    d.kernel.push_back(i % 5 == 0 ? 1 : draw.From(1, 4));
    d.attrs.strides.push_back(i % 10 == 0 ? 1 : draw.From(1, 3));
    d.attrs.dilations.push_back(draw.Of({1, 1, 2, 3}));
    d.attrs.pad_before.push_back(draw.From(0, 3));
    d.attrs.pad_after.push_back(draw.From(0, 3));
  }
  d.depth = draw.Of({1, 3, 8, 33}), d.channels = draw.Of({1, 8, 13, 16, 24, 40, 70});
  d.in.push_back(d.depth);
  d.kernel.insert(d.kernel.end(), {d.depth, d.channels});
  return d;
}

TEST(TiledConv, AsPlainLoops) {
  Draw draw;
  int compared = 0;
  for (int i = 0; i < 600; ++i) {
    const Drawn d = DrawConv(draw, i);
    const auto p = MakeConvProblem(d.attrs, Shape(d.in), Shape(d.kernel));
    if (!p.ok() || p->output.num_elements() == 0) continue;
    const Tensor x = draw.Filled(Shape(d.in)), w = draw.Filled(Shape(d.kernel));
    Tensor plain = *Tensor::Zeros(Dtype::kFloat, p->output);
    ConvReference(*p, x, w, &plain);
    const std::vector<float> bias = draw.Floats(d.channels);
    const ScopedThreads team(static_cast<int>(draw.From(1, 2)));
    TiledConv tiled;
    const auto bound = tiled.Bind(*p, w, {}, bias.data(), 1, BiasSumRelu());
    ASSERT_TRUE(bound.ok()) << bound.status();
    ASSERT_NE(*bound, nullptr);
    ExpectSteps(plain, **bound, x, draw.Filled(p->output), bias, d.Text());
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

// Lines of one vector and of several tiles, with few channels of results.
TEST(PlanarConv, AsPlainLoops) {
  Draw draw;
  int compared = 0;
  for (int i = 0; i < 900; ++i) {
    Drawn d = DrawConv(draw, i);
    if (d.attrs.spatial != 2) continue;
    d.in[2] = draw.Of({3, 9, 16, 31, 70, 140, 300});
    d.kernel.back() = d.channels = draw.From(1, 8);
    d.attrs.strides[1] = 1;
    const auto p = MakeConvProblem(d.attrs, Shape(d.in), Shape(d.kernel));
    if (!p.ok() || !PlanarConv::Suits(*p)) continue;
    const Tensor x = draw.Filled(Shape(d.in)), w = draw.Filled(Shape(d.kernel));
    Tensor plain = *Tensor::Zeros(Dtype::kFloat, p->output);
    ConvReference(*p, x, w, &plain);
    const std::vector<float> bias = draw.Floats(d.channels);
    const ScopedThreads team(static_cast<int>(draw.From(1, 2)));
    const auto bound = PlanarConv::Bind(*p, w, {}, bias.data(), 1, BiasSumRelu());
    ASSERT_TRUE(bound.ok()) << bound.status();
    ASSERT_NE(*bound, nullptr);
    ExpectSteps(plain, **bound, x, draw.Filled(p->output), bias, d.Text());
    ++compared;
  }
  EXPECT_TRUE(compared > 150 || Isa().level == IsaLevel::kBaseline) << compared;
}

// With what keeps the weights of both ways, and refers to `bias`.
struct Winograd {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const ConvProblem& p, const Tensor& w,
                                              const std::vector<float>& bias) {
    return conv.Bind(p, w, {}, bias.data(), 1, BiasSumRelu(),
                     [&, p, w] { return tiled.Bind(p, w, {}, bias.data(), 1, BiasSumRelu()); });
  }
  TiledConv tiled;
  WinogradConv conv;
};

// Images of odd sizes, whose last tiles are cut, with and without borders, windows with gaps, and
// volumes.
TEST(WinogradConv, AsPlainLoops) {
  Draw draw;
  int compared = 0;
  for (int i = 0; i < 80; ++i) {
    ConvAttrs attrs;
    attrs.padding = static_cast<Padding>(draw.From(0, 2));
    attrs.spatial = static_cast<int>(draw.From(2, 3));
    Dims in = {draw.From(1, 3)}, kernel;
    for (int s = attrs.spatial - 1; s >= 0; --s) {
      attrs.strides.push_back(1);
      attrs.dilations.push_back(draw.Of({1, 1, 1, 2, 3}));
      attrs.pad_before.push_back(draw.From(0, 3));
      attrs.pad_after.push_back(draw.From(0, 3));
      in.push_back(s == 2 ? draw.From(1, 4) : draw.From(3, 16));
      kernel.push_back(s == 2 ? draw.From(1, 3) : 3);
    }
    const int64_t depth = draw.Of({32, 48}), channels = draw.Of({32, 64, 80});
    in.push_back(depth);
    kernel.insert(kernel.end(), {depth, channels});
    const auto p = MakeConvProblem(attrs, Shape(in), Shape(kernel));
    if (!p.ok() || !WinogradConv::Suits(*p)) continue;
    const Tensor x = draw.Filled(Shape(in)), w = draw.Filled(Shape(kernel));
    Tensor plain = *Tensor::Zeros(Dtype::kFloat, p->output);
    ConvReference(*p, x, w, &plain);
    const std::vector<float> bias = draw.Floats(channels);
    const ScopedThreads team(static_cast<int>(draw.From(1, 2)));
    Winograd winograd;
    const auto bound = winograd.Bind(*p, w, bias);
    ASSERT_TRUE(bound.ok()) << bound.status();
    ExpectSteps(plain, **bound, x, draw.Filled(p->output), bias, Shape(in).ToString());
    ++compared;
  }
  EXPECT_TRUE(compared > 20 || Isa().level == IsaLevel::kBaseline) << compared;
}

// Windows that do not see a number that is none must not show it, though their tile does.
TEST(WinogradConv, NumbersThatAreNoneStayInTheirWindows) {
  Draw draw;
  ConvAttrs attrs;
  attrs.padding = Padding::kSame;
  attrs.strides = attrs.dilations = {1, 1};
  const Shape in({1, 13, 15, 32}), kernel({3, 3, 32, 32});
  const auto p = MakeConvProblem(attrs, in, kernel);
  ASSERT_TRUE(p.ok());
  if (!WinogradConv::Suits(*p)) GTEST_SKIP() << "the processor has no such loops";
  const Tensor w = draw.Filled(kernel);
  const std::vector<float> bias = draw.Floats(32);
  Winograd winograd;
  const auto bound = winograd.Bind(*p, w, bias);
  ASSERT_TRUE(bound.ok()) << bound.status();
  const Tensor more = draw.Filled(p->output);
  for (const float odd : {NAN, INFINITY, -INFINITY, 3e38F}) {
    Tensor x = draw.Filled(in);
    x.data<float>()[(4 * 15 + 6) * 32 + 5] = odd;
    Tensor plain = *Tensor::Zeros(Dtype::kFloat, p->output);
    ConvReference(*p, x, w, &plain);
    Tensor got = *Tensor::Make(Dtype::kFloat, p->output);
    const void* inputs[] = {x.raw(), more.raw()};
    void* outputs[] = {got.raw()};
    std::vector<float> scratch((*bound)->scratch_bytes() / sizeof(float), NAN);
    ASSERT_TRUE((*bound)->Run(inputs, outputs, scratch.data()).ok());
    for (int64_t n = 0; n < got.num_elements(); ++n) {
      const float sum =
          plain.data<float>()[n] + bias[static_cast<size_t>(n % 32)] + more.data<float>()[n];
      const float want = sum < 0 ? 0 : sum, is = got.data<float>()[n];
      ASSERT_EQ(std::isnan(want), std::isnan(is)) << odd << " at " << n;
      if (!std::isfinite(want)) continue;
      ASSERT_NEAR(is, want, 1e-4 + 1e-5 * std::abs(want)) << odd << " at " << n;
    }
  }
}

TEST(TiledTranspose, AsPlainLoops) {
  Draw draw;
  int compared = 0;
  for (int i = 0; i < 900; ++i) {
    Drawn d = DrawConv(draw, i);
    if (i % 3 == 0) d.kernel[d.kernel.size() - 2] = d.in.back() = d.depth = draw.From(1, 4);
    if (i % 9 == 0) d.in[d.in.size() - 2] = draw.Of({31, 40, 130});
    d.attrs.dilations.assign(d.attrs.dilations.size(), 1);
    const auto p = MakeConvProblem(d.attrs, Shape(d.in), Shape(d.kernel));
    if (!p.ok() || p->output.num_elements() == 0) continue;
    bool seldom = false;  // a pixel that no tap reaches
    for (size_t s = 0; s < p->kernel.size(); ++s) seldom |= p->kernel[s] < p->strides[s];
    if (seldom) continue;
    const Tensor x = draw.Filled(p->output), w = draw.Filled(Shape(d.kernel));
    Tensor plain = *Tensor::Zeros(Dtype::kFloat, Shape(d.in));
    ConvTransposeReference(*p, x, w, &plain);
    const std::vector<float> bias = draw.Floats(d.depth);
    const ScopedThreads team(static_cast<int>(draw.From(1, 2)));
    TiledTranspose tiled;
    const auto bound = tiled.Bind(*p, w, 0, bias.data(), 1, BiasSumRelu());
    ASSERT_TRUE(bound.ok()) << bound.status();
    ASSERT_NE(*bound, nullptr);
    ExpectSteps(plain, **bound, x, draw.Filled(Shape(d.in)), bias, d.Text());
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace smelt::nn
