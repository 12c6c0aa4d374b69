// Programs that run in parts: the same answers, from several threads at once.
#include "smelt/compile/parts.h"

#include <gtest/gtest.h>

#include <thread>

#include "smelt/base/team.h"
#include "smelt/graph/text.h"

namespace smelt {
namespace {

// b2 of conv2(relu(conv1(x))), which adds what does not depend on the rows.
constexpr char kGraph[] = R"(
x = _Arg {T=float, index=0}
shift = _Arg {T=float, index=1}
w = Const {dtype=float, value=float[3,3,32,32]{0.01, -0.02, 0.03, 0.005}}
a = Conv2D(x, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
b = Relu(a) {T=float}
c = Conv2D(b, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
y = AddV2(c, shift) {T=float}
r = _Retval(y) {T=float, index=0}
q = _Retval(b) {T=float, index=1}
)";

Tensor Waves(const Shape& shape) {
  Tensor t = *Tensor::Make(Dtype::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>(i * 7919 % 1009) / 500 - 1;
  }
  return t;
}

TEST(Parts, AnswerAsAllRowsAtOnce) {
  const auto graph = ParseGraph(kGraph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const int64_t rows : {2, 3, 7, 8, 33}) {
    const Shape shapes[] = {Shape({rows, 8, 16, 32}), Shape({32})};
    Tensor x = Waves(shapes[0]), shift = Waves(shapes[1]);
    Tensor* args[] = {&x, &shift};
    const ScopedThreads team(2);
    KernelStates states;
    const auto whole = PartedProgram::Compile(**graph, shapes, states, "f", false);
    const auto parts = PartedProgram::Compile(**graph, shapes, states, "f", true);
    ASSERT_TRUE(whole.ok() && parts.ok());
    EXPECT_EQ((*whole)->part_rows(), 0);
    EXPECT_GT((*parts)->part_rows(), 0);
    Step step;
    std::vector<Tensor> want(2);
    ASSERT_TRUE((*whole)->Run(args, std::span<Tensor>(want), step, nullptr).ok());
    std::vector<std::thread> clients;
    for (int c = 0; c < 4; ++c) {
      clients.emplace_back([&] {
        const ScopedThreads own(2);
        for (int k = 0; k < 5; ++k) {
          Step mine;
          std::vector<Tensor> got(2);
          const Status status = (*parts)->Run(args, std::span<Tensor>(got), mine, nullptr);
          ASSERT_TRUE(status.ok()) << status;
          for (size_t i = 0; i < 2; ++i) {
            ASSERT_EQ(got[i].shape(), want[i].shape());
            for (int64_t n = 0; n < got[i].num_elements(); ++n) {
              ASSERT_NEAR(got[i].data<float>()[n], want[i].data<float>()[n], 1e-4) << i << " " << n;
            }
          }
        }
      });
    }
    for (std::thread& t : clients) t.join();
  }
}

TEST(Parts, StopWhereTheStepIsCancelled) {
  const auto graph = ParseGraph(kGraph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Shape shapes[] = {Shape({8, 8, 16, 32}), Shape({32})};
  Tensor x = Waves(shapes[0]), shift = Waves(shapes[1]);
  Tensor* args[] = {&x, &shift};
  const ScopedThreads team(2);
  KernelStates states;
  const auto parts = PartedProgram::Compile(**graph, shapes, states, "f", true);
  ASSERT_TRUE(parts.ok());
  Cancellation cancellation;
  cancellation.Cancel();
  Step step;
  step.cancellation = &cancellation;
  std::vector<Tensor> results(2);
  const Status status = (*parts)->Run(args, std::span<Tensor>(results), step, nullptr);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

}  // namespace
}  // namespace smelt
