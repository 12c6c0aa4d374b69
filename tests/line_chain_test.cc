// Layers one behind the other by lines beside the same layers by themselves, whatever
// windows, borders, steps and threads are.
#include "smelt/kernels/nn/line_chain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "smelt/base/team.h"
#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/nn/depthwise.h"
#include "smelt/kernels/nn/tiled_conv.h"

namespace smelt::nn {
namespace {

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}
  int64_t From(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  int64_t Of(std::initializer_list<int64_t> some) {
    return some.begin()[From(0, std::ssize(some) - 1)];
  }
  Tensor Filled(const Shape& shape) {
    Tensor t = *Tensor::Make(Dtype::kFloat, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.data<float>()[i] = static_cast<float>(From(-1000, 1000)) / 1000;
    }
    return t;
  }

 private:
  std::mt19937 random_;
};

struct Layer {
  std::shared_ptr<const BoundKernel> kernel;
  TiledConv weights;  // of a product, which the kernel reads
  Tensor more;        // what it adds; none: nothing
  Shape result;
  std::string text;
};

FusedOps Steps(bool adds) {
  using Kind = FusedStep::Kind;
  FusedOps ops;
  ops.steps = {{Kind::kBias}};
  if (adds) ops.steps.push_back({Kind::kAdd, Activation::kRelu, 1});
  ops.steps.push_back({Kind::kActivation, Activation::kRelu6});
  return ops;
}

std::unique_ptr<Layer> DrawProduct(Draw& draw, const Shape& in) {
  auto layer = std::make_unique<Layer>();
  const Shape filter({1, 1, in[3], draw.Of({16, 24, 33, 70})});
  ConvAttrs attrs;
  attrs.strides = attrs.dilations = {1, 1};
  const auto p = MakeConvProblem(attrs, in, filter);
  const Tensor bias = draw.Filled(Shape({filter[3]}));
  const bool adds = draw.From(0, 2) == 0;
  if (adds) layer->more = draw.Filled(p->output);
  layer->kernel =
      *layer->weights.Bind(*p, draw.Filled(filter), {}, bias.data<float>(), 1, Steps(adds));
  layer->result = p->output;
  layer->text = " product " + filter.ToString();
  return layer;
}

// nullptr: the window does not fit the image.
std::unique_ptr<Layer> DrawDepthwise(Draw& draw, const Shape& in) {
  auto layer = std::make_unique<Layer>();
  ConvAttrs attrs;
  attrs.padding = static_cast<Padding>(draw.From(0, 2));
  for (int s = 0; s < 2; ++s) {
    attrs.strides.push_back(draw.From(1, 3));
    attrs.dilations.push_back(draw.Of({1, 1, 2}));
    attrs.pad_before.push_back(draw.From(0, 3));
    attrs.pad_after.push_back(draw.From(0, 3));
  }
  attrs.depthwise = true;
  const Shape filter({draw.From(1, 5), draw.From(1, 5), in[3], 1});
  const auto p = MakeConvProblem(attrs, in, filter);
  if (!p.ok() || p->output.num_elements() == 0) return nullptr;
  const Tensor bias = draw.Filled(Shape({in[3]}));
  layer->kernel = *BindDepthwise(*p, draw.Filled(filter), {}, bias.data<float>(), Steps(false));
  layer->result = p->output;
  layer->text = " depthwise " + filter.ToString() + " of " + in.ToString();
  return layer;
}

void RunOn(const BoundKernel& kernel, const std::vector<const void*>& inputs, Tensor& result) {
  std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float), NAN);
  void* outputs[] = {result.raw()};
  std::fill_n(result.data<float>(), result.num_elements(), NAN);
  ASSERT_TRUE(kernel.Run(inputs.data(), outputs, scratch.data()).ok());
}

TEST(LineChain, AsTheLayersByThemselves) {
  int compared = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Draw draw(seed);
    Shape shape({draw.From(1, 3), draw.From(1, 40), draw.From(1, 9), draw.Of({16, 24, 33, 70})});
    const Tensor x = draw.Filled(shape);
    const ScopedThreads team(static_cast<int>(draw.From(1, 2)));
    std::vector<std::unique_ptr<Layer>> layers;
    std::vector<LineLink> links;
    std::vector<const void*> inputs = {x.raw()};
    std::string text;
    Tensor want = x;
    const int64_t count = draw.From(2, 5);
    for (int64_t i = 0; i < count; ++i) {
      auto layer = draw.From(0, 1) == 0 ? DrawProduct(draw, shape) : DrawDepthwise(draw, shape);
      // Without vectors there are no loops for few channels.
      if (layer == nullptr || layer->kernel == nullptr) continue;
      ASSERT_NE(layer->kernel->lines(), nullptr);
      shape = layer->result;
      text += layer->text;
      Tensor next = *Tensor::Make(Dtype::kFloat, shape);
      RunOn(*layer->kernel, {want.raw(), layer->more.raw()}, next);
      want = next;
      links.push_back({layer->kernel, {0, static_cast<int>(inputs.size())}});
      inputs.push_back(layer->more.raw());
      layers.push_back(std::move(layer));
    }
    if (links.size() < 2) continue;
    for (size_t i = 1; i < links.size(); ++i) {
      ASSERT_TRUE(
          FollowsByLines(links[i - 1].kernel->lines()->sizes(), links[i].kernel->lines()->sizes()));
    }
    Tensor got = *Tensor::Make(Dtype::kFloat, shape);
    RunOn(*BindLineChain(links), inputs, got);
    // Tiles of few pixels add in another order.
    for (int64_t n = 0; n < got.num_elements(); ++n) {
      const float is = got.data<float>()[n], was = want.data<float>()[n];
      ASSERT_NEAR(is, was, 1e-5 + 1e-5 * std::abs(was)) << seed << text << " at " << n;
    }
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

// A line of a window that sees padding alone reads nothing.
TEST(LineChain, ReadsTheLinesOfTheImageAlone) {
  ConvAttrs attrs;
  attrs.padding = Padding::kExplicit;
  attrs.strides = attrs.dilations = {1, 1};
  attrs.pad_before = {4, 0}, attrs.pad_after = {0, 0};
  attrs.depthwise = true;
  const int64_t depth = 64;
  const auto p = MakeConvProblem(attrs, Shape({1, 3, 2, depth}), Shape({3, 1, depth, 1}));
  ASSERT_TRUE(p.ok()) << p.status();
  Draw draw(1);
  const auto kernel = *BindDepthwise(*p, draw.Filled(Shape({3, 1, depth, 1})), {}, nullptr, {});
  ASSERT_NE(kernel, nullptr);
  const LineKernel& lines = *kernel->lines();
  EXPECT_EQ(lines.Reads({0, 1}).count(), 0);
  EXPECT_EQ(lines.Reads({1, 3}).count(), 1);
  EXPECT_EQ(lines.Reads({0, 5}).count(), 3);
}

}  // namespace
}  // namespace smelt::nn
