// Weights that the first run reads as they lie and later ones packed: the same bits, and what plain
// loops make.
#include "smelt/kernels/common/later_form.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "smelt/base/team.h"
#include "smelt/kernels/nn/conv_reference.h"
#include "smelt/kernels/nn/streamed_conv.h"
#include "smelt/kernels/nn/tiled_conv.h"
#include "smelt/kernels/nn/tiled_product.h"

namespace smelt::nn {
namespace {

Tensor Drawn(const Dims& dims, uint64_t seed) {
  Tensor t = *Tensor::Make(Dtype::kFloat, *Shape::Make(dims));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> some(-1, 1);
  for (float& f : t.flat<float>()) f = some(random);
  return t;
}

FusedOps BiasSumSigmoid() {
  using Kind = FusedStep::Kind;
  FusedOps steps;
  steps.steps = {{Kind::kBias}, {Kind::kAdd, Activation::kRelu, 1}, {Kind::kActivation}};
  steps.steps[2].activation = Activation::kSigmoid;
  return steps;
}

std::vector<float> RunOnce(const BoundKernel& kernel, const Tensor& x, const Tensor& more) {
  std::vector<float> y(static_cast<size_t>(more.num_elements()), NAN);
  const void* inputs[] = {x.raw(), more.raw()};
  void* outputs[] = {y.data()};
  std::vector<char> scratch(kernel.scratch_bytes());
  EXPECT_TRUE(kernel.Run(inputs, outputs, scratch.data()).ok());
  return y;
}

// Three runs: without the form, the one that makes it, one that finds it.
void ExpectRuns(const BoundKernel& kernel, const Tensor& x, const Tensor& more, const Tensor& plain,
                const std::vector<float>& bias, double tolerance) {
  const std::vector<float> first = RunOnce(kernel, x, more);
  for (size_t i = 0; i < first.size(); ++i) {
    const float sum = plain.data<float>()[i] + bias[i % bias.size()] + more.data<float>()[i];
    ASSERT_NEAR(first[i], 1 / (1 + std::exp(-sum)), tolerance) << i;
  }
  for (int run = 0; run < 2; ++run) {
    const std::vector<float> again = RunOnce(kernel, x, more);
    ASSERT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)), 0);
  }
}

struct ConvCase {
  Dims in, kernel;
  int64_t stride;
  Padding padding;
};

template <typename Conv>
void CheckConv(const ConvCase& c) {
  ConvAttrs attrs;
  attrs.spatial = 2;
  attrs.padding = c.padding;
  attrs.strides = {c.stride, c.stride};
  attrs.dilations = {1, 1};
  const auto p = MakeConvProblem(attrs, *Shape::Make(c.in), *Shape::Make(c.kernel));
  ASSERT_TRUE(p.ok()) << p.status();
  const Tensor x = Drawn(c.in, 1), w = Drawn(c.kernel, 2),
               more = Drawn(Dims(p->output.dims().begin(), p->output.dims().end()), 3);
  const int64_t channels = c.kernel.back();
  std::vector<float> bias(static_cast<size_t>(channels), 0.25F);
  std::vector<float> factors;
  for (int64_t i = 0; i < channels; ++i) factors.push_back(1 + static_cast<float>(i % 3) / 8);
  Tensor scaled = *w.Clone();
  for (int64_t i = 0; i < w.num_elements(); ++i) {
    scaled.data<float>()[i] *= factors[static_cast<size_t>(i % channels)];
  }
  Tensor plain = *Tensor::Zeros(Dtype::kFloat, p->output);
  ConvReference(*p, x, scaled, &plain);
  for (const int threads : {1, 2, 3}) {
    const ScopedThreads team(threads);
    Conv conv;
    const auto bound = conv.Bind(*p, w, factors, bias.data(), 1, BiasSumSigmoid());
    ASSERT_TRUE(bound.ok()) << bound.status();
    ASSERT_NE(*bound, nullptr);
    ExpectRuns(**bound, x, more, plain, bias, 1e-4);
  }
}

TEST(LaterForm, TiledConvRunsTheSameWithoutIt) {
  // Several groups of panels; channels that fill no vector; windows that step.
  CheckConv<TiledConv>({{2, 3, 3, 300}, {1, 1, 300, 520}, 1, Padding::kValid});
  CheckConv<TiledConv>({{1, 6, 7, 90}, {3, 3, 90, 101}, 2, Padding::kSame});
  CheckConv<TiledConv>({{1, 6, 6, 2100}, {1, 1, 2100, 33}, 1, Padding::kValid});
}

TEST(LaterForm, StreamedConvRunsTheSameWithoutIt) {
  CheckConv<StreamedConv>({{1, 4, 4, 320}, {3, 3, 320, 50}, 1, Padding::kSame});
  CheckConv<StreamedConv>({{1, 4, 5, 700}, {1, 1, 700, 150}, 1, Padding::kValid});
}

TEST(LaterForm, TiledProductRunsTheSameWithoutIt) {
  for (const bool turned : {false, true}) {
    // One part of the sums and two.
    for (const auto& [m, k, n] : {std::tuple(37, 130, 520), std::tuple(40, 1100, 5 * 48)}) {
      const Tensor x = Drawn({m, k}, 1), w = Drawn(turned ? Dims{n, k} : Dims{k, n}, 2);
      const auto p = MakeMatMulProblem(x.shape(), w.shape(), false, turned, false);
      ASSERT_TRUE(p.ok()) << p.status();
      if (!TiledProduct::Wants(*p)) GTEST_SKIP() << "the processor has no tiles";
      Tensor plain = *Tensor::Zeros(Dtype::kFloat, p->output);
      ASSERT_TRUE(MatMulReference(*p, x, w, false, false, &plain).ok());
      const std::vector<float> bias(static_cast<size_t>(n), -0.5F);
      for (const int threads : {1, 2, 3}) {
        const ScopedThreads team(threads);
        TiledProduct product;
        const auto bound = product.Bind(*p, w, bias.data(), 1, BiasSumSigmoid());
        ASSERT_TRUE(bound.ok()) << bound.status();
        ASSERT_NE(*bound, nullptr);
        ExpectRuns(**bound, x, Drawn({m, n}, 3), plain, bias, 2e-4);
      }
    }
  }
}

TEST(LaterForm, IsMadeByTheSecondRunAndOnce) {
  using Forms = ConstantForms<int>;
  const auto forms = std::make_shared<Forms>();
  const Tensor large = Drawn({1 << 17}, 1), small = Drawn({16}, 2);
  std::atomic<int> made = 0;
  const auto make = [&](Allocator* a) {
    ++made;
    return Tensor::Make(Dtype::kFloat, Shape({1}), a);
  };
  const auto later = *LaterForm::Of(forms, large, 1, make);
  EXPECT_EQ(*later->ForRun(), nullptr);
  EXPECT_EQ(made, 0);
  std::vector<std::thread> runs;
  std::vector<const Tensor*> seen(8);
  for (auto& form : seen) runs.emplace_back([&] { form = *later->ForRun(); });
  for (auto& run : runs) run.join();
  EXPECT_EQ(made, 1);
  for (const Tensor* form : seen) EXPECT_TRUE(form != nullptr && form == seen[0]);
  // Another kernel of the node finds it, and one that wants another form does not.
  EXPECT_EQ(*(*LaterForm::Of(forms, large, 1, make))->ForRun(), seen[0]);
  EXPECT_EQ(*(*LaterForm::Of(forms, large, 2, make))->ForRun(), nullptr);
  EXPECT_EQ(made, 1);
  // What is small is there at once.
  EXPECT_NE(*(*LaterForm::Of(forms, small, 1, make))->ForRun(), nullptr);
  EXPECT_EQ(made, 2);
}

TEST(LaterForm, SaysWhatWentWrongToEachRun) {
  const auto forms = std::make_shared<ConstantForms<int>>();
  const auto later = *LaterForm::Of(forms, Drawn({1 << 17}, 1), 1, [](Allocator*) {
    return StatusOr<Tensor>(ResourceExhausted("no memory"));
  });
  EXPECT_EQ(*later->ForRun(), nullptr);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(later->ForRun().status().code(), absl::StatusCode::kResourceExhausted);
  }
}

}  // namespace
}  // namespace smelt::nn
