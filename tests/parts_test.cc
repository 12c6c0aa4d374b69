// Programs that run in parts: the same answers, from several threads at once.
#include "smelt/compile/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "smelt/base/team.h"
#include "smelt/compile/stages.h"
#include "smelt/graph/text.h"
#include "smelt/runtime/compiled_item.h"

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

// Its last layer reads more weights than values, and what every part gets, too.
constexpr char kWithHead[] = R"(
x = _Arg {T=float, index=0}
shift = _Arg {T=float, index=1}
w = Const {dtype=float, value=float[3,3,32,32]{0.01, -0.02, 0.03, 0.005}}
m = Const {dtype=float, value=float[4096,512]{0.001, -0.002, 0.003}}
s = Const {dtype=int32, value=int32[2]{-1, 4096}}
a1 = Conv2D(x, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
a2 = Conv2D(a1, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
a3 = Conv2D(a2, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
a = Conv2D(a3, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
b = AddV2(a, shift) {T=float}
f = Reshape(b, s) {T=float, Tshape=int32}
d = MatMul(f, m) {T=float}
e = Tanh(d) {T=float}
g = Split(one, e) {T=float, num_split=16}
one = Const {dtype=int32, value=int32[]{1}}
h = AddV2(g:3, shift) {T=float}
r = _Retval(h) {T=float, index=0}
q = _Retval(e) {T=float, index=1}
)";

// Few weights, many, and few again, which the first have read, too; so has the last stage an
// argument.
constexpr char kOfThreeStages[] = R"(
x = _Arg {T=float, index=0}
shift = _Arg {T=float, index=1}
w = Const {dtype=float, value=float[3,3,32,32]{0.01, -0.02, 0.03, 0.005}}
m = Const {dtype=float, value=float[4096,512]{0.001, -0.002, 0.003}}
n = Const {dtype=float, value=float[512,4096]{0.002, -0.001, 0.003}}
s = Const {dtype=int32, value=int32[2]{-1, 4096}}
t = Const {dtype=int32, value=int32[4]{-1, 8, 16, 32}}
a1 = Conv2D(x, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
a2 = Conv2D(a1, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
a3 = Conv2D(a2, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
a = Conv2D(a3, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
b = AddV2(a, shift) {T=float}
f = Reshape(b, s) {T=float, Tshape=int32}
d = MatMul(f, m) {T=float}
e = Tanh(d) {T=float}
g = MatMul(e, n) {T=float}
h = Reshape(g, t) {T=float, Tshape=int32}
i = Conv2D(h, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
j = Conv2D(i, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
k = Conv2D(j, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
l = Conv2D(k, w) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
o = AddV2(l, shift) {T=float}
p = Relu(o) {T=float}
r = _Retval(p) {T=float, index=0}
q = _Retval(l) {T=float, index=1}
)";

Tensor Waves(const Shape& shape) {
  Tensor t = *Tensor::Make(Dtype::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>(i * 7919 % 1009) / 500 - 1;
  }
  return t;
}

// From several threads at once, what the graph of two results gives without parts.
void ExpectPartsAnswerAsWhole(const char* text, std::initializer_list<int64_t> all_rows,
                              size_t stages) {
  const auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const int64_t rows : all_rows) {
    const Shape shapes[] = {Shape({rows, 8, 16, 32}), Shape({32})};
    Tensor x = Waves(shapes[0]), shift = Waves(shapes[1]);
    Tensor* args[] = {&x, &shift};
    const ScopedThreads team(2);
    KernelStates states;
    const auto whole = PartedProgram::Compile(**graph, shapes, states, "f", PartsWanted());
    const auto parts =
        PartedProgram::Compile(**graph, shapes, states, "f", {PartsWanted::Kind::kOfRun});
    ASSERT_TRUE(whole.ok() && parts.ok());
    EXPECT_EQ((*whole)->stages().size(), 1);
    EXPECT_EQ((*whole)->stages()[0].part, 0);
    EXPECT_GT((*parts)->stages()[0].part, 0);
    EXPECT_EQ((*parts)->stages().size(), stages);
    Step step;
    std::vector<Tensor> want(2);
    ASSERT_TRUE((*whole)->Run(args, std::span<Tensor>(want), step).ok());
    std::vector<std::thread> clients;
    for (int c = 0; c < 4; ++c) {
      clients.emplace_back([&] {
        const ScopedThreads own(2);
        for (int k = 0; k < 5; ++k) {
          Step mine;
          std::vector<Tensor> got(2);
          const Status status = (*parts)->Run(args, std::span<Tensor>(got), mine);
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

TEST(Parts, AnswerAsAllRowsAtOnce) { ExpectPartsAnswerAsWhole(kGraph, {2, 3, 7, 8, 33}, 1); }
TEST(Parts, OfStagesInTurn) { ExpectPartsAnswerAsWhole(kOfThreeStages, {7, 8, 33}, 3); }
TEST(Parts, AreGoneOnWithByAllRows) { ExpectPartsAnswerAsWhole(kWithHead, {2, 3, 7, 8}, 2); }

// Whatever the cuts and parts.
TEST(Parts, OfDrawnStagesAnswerAsAllRowsAtOnce) {
  const auto graph = ParseGraph(kOfThreeStages);
  ASSERT_TRUE(graph.ok()) << graph.status();
  size_t most = 0;
  for (const int64_t rows : {2, 5, 8}) {
    const Shape shapes[] = {Shape({rows, 8, 16, 32}), Shape({32})};
    Tensor x = Waves(shapes[0]), shift = Waves(shapes[1]);
    Tensor* args[] = {&x, &shift};
    const ScopedThreads team(2);
    KernelStates states;
    const auto whole = PartedProgram::Compile(**graph, shapes, states, "f", PartsWanted());
    ASSERT_TRUE(whole.ok());
    Step step;
    std::vector<Tensor> want(2);
    ASSERT_TRUE((*whole)->Run(args, std::span<Tensor>(want), step).ok());
    for (uint64_t number = 1; number < 12; ++number) {
      DrawStages(number);
      const auto drawn =
          PartedProgram::Compile(**graph, shapes, states, "f", {PartsWanted::Kind::kOfRun});
      DrawStages(0);
      ASSERT_TRUE(drawn.ok()) << drawn.status();
      most = std::max(most, (*drawn)->stages().size());
      std::vector<Tensor> got(2);
      const Status status = (*drawn)->Run(args, std::span<Tensor>(got), step);
      ASSERT_TRUE(status.ok()) << status;
      for (size_t i = 0; i < 2; ++i) {
        ASSERT_EQ(got[i].shape(), want[i].shape());
        for (int64_t n = 0; n < got[i].num_elements(); ++n) {
          ASSERT_NEAR(got[i].data<float>()[n], want[i].data<float>()[n], 1e-4)
              << number << " " << n;
        }
      }
    }
  }
  EXPECT_GE(most, 4);
}

TEST(Parts, StopWhereTheStepIsCancelled) {
  const auto graph = ParseGraph(kGraph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Shape shapes[] = {Shape({8, 8, 16, 32}), Shape({32})};
  Tensor x = Waves(shapes[0]), shift = Waves(shapes[1]);
  Tensor* args[] = {&x, &shift};
  const ScopedThreads team(2);
  KernelStates states;
  const auto parts =
      PartedProgram::Compile(**graph, shapes, states, "f", {PartsWanted::Kind::kOfRun});
  ASSERT_TRUE(parts.ok());
  Cancellation cancellation;
  cancellation.Cancel();
  Step step;
  step.cancellation = &cancellation;
  std::vector<Tensor> results(2);
  const Status status = (*parts)->Run(args, std::span<Tensor>(results), step);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

// A body of two states that gives a row of each turn, and one of the last; `x` is the turn's row,
// `shift` the same for all.
constexpr char kBody[] = R"(
h = _Arg {T=float, index=0}
c = _Arg {T=float, index=1}
x = _Arg {T=float, index=2}
shift = _Arg {T=float, index=3}
u = Const {dtype=float, value=float[128,128]{0.004, -0.003, 0.005, 0.001, -0.004}}
p = MatMul(h, u) {T=float}
z = AddV2(p, x) {T=float}
zs = AddV2(z, shift) {T=float}
h2 = Tanh(zs) {T=float}
g = Sigmoid(zs) {T=float}
kept = Mul(g, c) {T=float}
c2 = AddV2(kept, h2) {T=float}
r0 = _Retval(h2) {T=float, index=0}
r1 = _Retval(c2) {T=float, index=1}
r2 = _Retval(h2) {T=float, index=2}
r3 = _Retval(c2) {T=float, index=3}
)";
constexpr char kLoop[] = R"(
steps = Placeholder {dtype=int32}
h = Placeholder {dtype=float}
c = Placeholder {dtype=float}
x = Placeholder {dtype=float}
n = Placeholder {dtype=int32}
one = Placeholder {dtype=int32}
shift = Placeholder {dtype=float}
loop = _Scan(steps, h, c, x, n, one, shift) {Tarrays=list(float, float), Trest=list(float), Trows=list(float), Tstates=list(float, float), Tsteps=int32, body=0, last=list(false, true), num_arrays=2}
)";

TEST(Parts, ThreadsTakeRowsThroughALoop) {
  const auto graph = ParseGraph(kLoop);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Node* node = (*graph)->Find("loop");
  const auto make = [&] { return MakeCompiledScan(*node, *ParseGraph(kBody), "f"); };
  for (const int64_t rows : {1, 2, 3, 5, 8, 33}) {
    const auto alone = make(), team = make();
    // The last is enough work for two threads with any number of rows.
    for (const int32_t turns : {0, 1, 2, 7, 600}) {
      Tensor h = Waves(Shape({rows, 128})), c = Waves(Shape({rows, 128})),
             x = Waves(Shape({std::max(turns, 1), rows, 128})), shift = Waves(Shape({128}));
      Tensor steps = Tensor::Scalar<int32_t>(turns), n = Tensor::Scalar<int32_t>(turns + 2),
             one = Tensor::Scalar<int32_t>(1);
      Tensor* inputs[] = {&steps, &h, &c, &x, &n, &one, &shift};
      const auto run = [&](CompiledItem& item, int threads, std::span<Tensor> results) {
        const ScopedThreads own(threads);
        Step step;
        return item.Run(inputs, results, step);
      };
      std::vector<Tensor> want(4);
      ASSERT_TRUE(run(*alone, 1, want).ok());
      std::vector<std::thread> clients;
      for (int k = 0; k < 2; ++k) {
        clients.emplace_back([&] {
          std::vector<Tensor> got(4);
          const Status status = run(*team, 2, got);
          ASSERT_TRUE(status.ok()) << status;
          for (size_t i = 0; i < 4; ++i) {
            ASSERT_EQ(got[i].shape(), want[i].shape());
            for (int64_t at = 0; at < got[i].num_elements(); ++at) {
              ASSERT_NEAR(got[i].data<float>()[at], want[i].data<float>()[at], 1e-4)
                  << rows << " rows, " << turns << " turns, result " << i << " at " << at;
            }
          }
        });
      }
      for (std::thread& t : clients) t.join();
    }
    // Fewer rows are too little work a turn.
    const bool parted = team->Text(false).find("in parts of") != std::string::npos;
    EXPECT_EQ(parted, rows >= 4) << rows << " rows\n" << team->Text(true);
  }
}

}  // namespace
}  // namespace smelt
