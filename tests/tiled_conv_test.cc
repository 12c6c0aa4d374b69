// Convolutions by tiles of our own beside plain loops: every place of a window at a border, tiles
// that go on in the next line and image, channels that fill no vector.
#include "smelt/kernels/nn/tiled_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "smelt/base/team.h"
#include "smelt/kernels/nn/conv_reference.h"

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

TEST(TiledConv, AsPlainLoops) {
  Draw draw;
  int compared = 0;
  for (int i = 0; i < 600; ++i) {
    ConvAttrs attrs;
    attrs.spatial = static_cast<int>(draw.From(2, 3));
    attrs.padding = static_cast<Padding>(draw.From(0, 2));
    Dims in = {draw.From(1, 3)}, kernel;
    for (int d = 0; d < attrs.spatial; ++d) {
      const bool pixel = i % 5 == 0;  // windows of one
      in.push_back(draw.From(1, 9));
      kernel.push_back(pixel ? 1 : draw.From(1, 4));
      attrs.strides.push_back(i % 10 == 0 ? 1 : draw.From(1, 3));
      attrs.dilations.push_back(draw.Of({1, 1, 2, 3}));
      attrs.pad_before.push_back(draw.From(0, 3));
      attrs.pad_after.push_back(draw.From(0, 3));
    }
    const int64_t depth = draw.Of({1, 3, 8, 33}), channels = draw.Of({1, 8, 13, 16, 24, 40, 70});
    in.push_back(depth);
    kernel.insert(kernel.end(), {depth, channels});
    const auto p = MakeConvProblem(attrs, Shape(in), Shape(kernel));
    if (!p.ok() || p->output.num_elements() == 0) continue;
    const Tensor x = draw.Filled(Shape(in)), w = draw.Filled(Shape(kernel));
    const Tensor more = draw.Filled(p->output);
    const std::vector<float> bias = draw.Floats(channels);
    Tensor want = *Tensor::Zeros(Dtype::kFloat, p->output);
    Tensor got = *Tensor::Make(Dtype::kFloat, p->output);
    ConvReference(*p, x, w, &want);
    FusedOps steps;
    using Kind = FusedStep::Kind;
    steps.steps = {{Kind::kBias}, {Kind::kAdd, Activation::kRelu, 1}, {Kind::kActivation}};
    const ScopedThreads team(static_cast<int>(draw.From(1, 2)));
    TiledConv tiled;
    const auto bound = tiled.Bind(*p, w, {}, bias.data(), 1, steps);
    ASSERT_TRUE(bound.ok()) << bound.status();
    ASSERT_NE(*bound, nullptr);
    const void* inputs[] = {x.raw(), more.raw()};
    void* outputs[] = {got.raw()};
    ASSERT_TRUE((*bound)->Run(inputs, outputs, nullptr).ok());
    for (int64_t n = 0; n < got.num_elements(); ++n) {
      const float sum =
          want.data<float>()[n] + bias[static_cast<size_t>(n % channels)] + more.data<float>()[n];
      ASSERT_NEAR(got.data<float>()[n], std::max(sum, 0.0F), 1e-4)
          << Shape(in).ToString() << " by " << Shape(kernel).ToString() << " at " << n;
    }
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace smelt::nn
