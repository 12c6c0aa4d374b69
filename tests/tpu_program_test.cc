// What programs hold: memory that is booked on accelerator cores, and proofs of row splits. Both
// end with the program.
#include "smelt/runtime/tpu_program.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "smelt/graph/text.h"
#include "smelt/runtime/session.h"

namespace smelt {
namespace {

constexpr int64_t kWeights = int64_t{256} * 256 * 4;

std::unique_ptr<Session> Open(absl::string_view text, SessionOptions options) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::make_unique<Session>(std::shared_ptr<const Graph>(*std::move(graph)), options);
}

TEST(TpuProgram, BooksOnceForEachCoreAndGivesBack) {
  auto graph = ParseGraph(R"(
    x = _Arg {T=float, index=0}
    w = Const {dtype=float, value=float[256,256]{0.5}}
    m = MatMul(x, w) {T=float}
    y = _Retval(m) {T=float, index=0}
  )");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto executable = Executable::Make(*std::move(graph), "f");
  ASSERT_TRUE(executable.ok()) << executable.status();
  const auto core = MakeTpuCore(0, 2 * kWeights), small = MakeTpuCore(1, kWeights / 2);
  {
    TpuProgram program(**executable), other(**executable);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(program.Reserve(*core).ok());
    EXPECT_EQ(core->memory_used(), kWeights);
    ASSERT_TRUE(other.Reserve(*core).ok());
    EXPECT_EQ(core->memory_used(), 2 * kWeights);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(program.Reserve(*small).code(), absl::StatusCode::kResourceExhausted);
    }
    EXPECT_EQ(small->memory_used(), 0);
  }
  EXPECT_EQ(core->memory_used(), 0);
}

// A program of constant weights whose result is scaled by each of `n` variables.
std::string ScaledProduct(int n) {
  std::string args = "x: float", inputs = "x", types = "float", body, outer;
  std::string last = "m";
  for (int i = 0; i < n; ++i) {
    absl::StrAppend(&args, ", h", i, ": resource");
    absl::StrAppend(&inputs, ", v", i);
    absl::StrAppend(&types, ", resource");
    absl::StrAppend(&body, "r", i, " = ReadVariableOp(h", i, ") {dtype=float}\ns", i, " = Mul(",
                    last, ", r", i, ") {T=float}\n");
    last = absl::StrCat("s", i);
    absl::StrAppend(&outer, "v", i, " = VarHandleOp {dtype=float, shape=[], shared_name=\"v", i,
                    "\"}\nset", i, " = AssignVariableOp(v", i, ", value) {dtype=float}\n");
  }
  return absl::StrCat("func body(", args, R"() -> (y: float) {
      meta = TPUReplicateMetadata {num_replicas=1}
      w = Const {dtype=float, value=float[256,256]{0.5}}
      m = MatMul(x, w) {T=float}
      )",
                      body, "return y=", last, R"(
    }
    x = Placeholder {dtype=float, shape=[?,256]}
    value = Placeholder {dtype=float, shape=[]}
    core = Const {dtype=int32, value=int32[]{0}}
    )",
                      outer, "y = TPUPartitionedCall(", inputs, ", core) {Tin=list(", types,
                      "), Tout=list(float), f=@body}\n");
}

TEST(TpuProgram, OneThatIsMadeAnewTakesThePlaceOfTheOneBefore) {
  constexpr int kVariables = 6;
  SessionOptions options;
  options.tpu_cores = 1;
  options.hbm_bytes = kWeights + kWeights / 2;
  auto session = Open(ScaledProduct(kVariables), options);
  Tensor x = *Tensor::Zeros(Dtype::kFloat, Shape({1, 256}));
  x.flat<float>()[0] = 1;
  std::vector<float> values(kVariables, 1);
  const auto set = [&](int i) {
    ASSERT_TRUE(
        session->Run({{"value", Tensor::Scalar<float>(values[i])}}, {}, {absl::StrCat("set", i)})
            .ok());
  };
  for (int i = 0; i < kVariables; ++i) set(i);
  int64_t used = 0;
  // Each variable is held as a constant until it has changed twice.
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kVariables; ++i) {
      auto y = session->Run({{"x", x}}, {"y"}, {});
      ASSERT_TRUE(y.ok()) << y.status();
      float want = 0.5;
      for (float v : values) want *= v;
      EXPECT_EQ((*y)[0].scalar<float>(), want);
      y = std::vector<Tensor>();
      if (used == 0) used = session->tpu_core(0).memory_used();
      EXPECT_GE(used, kWeights);
      EXPECT_LT(session->tpu_core(0).memory_used(), used + kWeights / 2) << round << " " << i;
      values[i] += 1;
      set(i);
    }
  }
}

// A program that still runs when its successor is made keeps its memory booked until it ends.
TEST(TpuProgram, OneThatIsReplacedWhileItRunsGoesWhenItEnds) {
  constexpr absl::string_view kText = R"(
  func go(i: int32, n: int32) -> (more: bool) {
    more = Less(i, n) {T=int32}
    return more=more:0
  }
  func step(i: int32, n: int32) -> (j: int32, m: int32) {
    one = Const {dtype=int32, value=int32[]{1}}
    j = Add(i, one) {T=int32}
    return j=j:0, m=n
  }
  func body(x: float, h: resource, n: int32) -> (y: float) {
    meta = TPUReplicateMetadata {num_replicas=1}
    w = Const {dtype=float, value=float[256,256]{0.5}}
    m = MatMul(x, w) {T=float}
    r = ReadVariableOp(h) {dtype=float}
    s = Mul(m, r) {T=float}
    zero = Const {dtype=int32, value=int32[]{0}}
    loop = While(zero, n) {T=list(int32, int32), cond=@go, body=@step}
    y = Identity(s, ^loop) {T=float}
    return y=y:0
  }
  x = Placeholder {dtype=float, shape=[?,256]}
  n = Placeholder {dtype=int32, shape=[]}
  value = Placeholder {dtype=float, shape=[]}
  v = VarHandleOp {dtype=float, shape=[], shared_name="v"}
  set = AssignVariableOp(v, value) {dtype=float}
  core = Const {dtype=int32, value=int32[]{0}}
  y = TPUPartitionedCall(x, v, n, core) {Tin=list(float, resource, int32), Tout=list(float), f=@body}
)";
  for (const bool room : {true, false}) {
    SessionOptions options;
    options.tpu_cores = 1;
    options.hbm_bytes = room ? 3 * kWeights : kWeights + kWeights / 2;
    // A compiled loop whose results nobody reads does not run, and an arena outlives the run.
    options.compile = false;
    auto session = Open(kText, options);
    Device& core = session->tpu_core(0);
    const Tensor x = *Tensor::Zeros(Dtype::kFloat, Shape({1, 256}));
    const auto set = [&](float value) {
      return session->Run({{"value", Tensor::Scalar<float>(value)}}, {}, {"set"}).status();
    };
    const auto run = [&](int32_t n, const RunOptions& run_options) {
      return session->Run({{"x", x}, {"n", Tensor::Scalar<int32_t>(n)}}, {"y"}, {}, run_options)
          .status();
    };
    ASSERT_TRUE(set(1).ok());
    ASSERT_TRUE(run(1, {}).ok());
    const int64_t one = core.memory_used();
    EXPECT_GE(one, kWeights);
    Cancellation cancellation;
    std::atomic<bool> started{false};
    std::thread endless([&] {
      started = true;
      RunOptions until;
      until.cancellation = &cancellation;
      while (cancellation.Check().ok()) {
        EXPECT_EQ(run(std::numeric_limits<int32_t>::max(), until).code(),
                  absl::StatusCode::kCancelled);
      }
    });
    // What the loop holds beside the weights is little, but something.
    while (!started || core.memory_used() <= one) std::this_thread::yield();
    EXPECT_TRUE(set(2).ok());
    EXPECT_EQ(run(1, {}).code(),
              room ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted);
    EXPECT_GE(core.memory_used(), room ? 2 * kWeights : kWeights);
    cancellation.Cancel();
    endless.join();
    EXPECT_TRUE(run(1, {}).ok());
    EXPECT_LT(core.memory_used(), kWeights + kWeights / 4);
  }
}

// A function that takes its axis from a variable's handle is called with more handles than it keeps
// programs for.
TEST(TpuProgram, ProofsAndBookingsEndWithTheProgram) {
  constexpr int kVariables = 12;
  std::string text = R"(
  func body(x: float, h: resource) -> (y: float) {
    meta = TPUReplicateMetadata {num_replicas=1, num_cores_per_replica=2}
    w = Const {dtype=float, value=float[256,256]{0.5}}
    axis = ReadVariableOp(h) {dtype=int32}
    most = Max(x, axis) {T=float, keep_dims=true}
    d = Sub(x, most) {T=float}
    y = MatMul(d, w) {T=float}
    return y=y:0
  }
  x = Placeholder {dtype=float}
  value = Placeholder {dtype=int32}
  core = Const {dtype=int32, value=int32[]{0}}
)";
  for (int i = 0; i < kVariables; ++i) {
    absl::StrAppend(&text, "v", i, " = VarHandleOp {dtype=int32, shape=[1], shared_name=\"v", i,
                    "\"}\nset", i, " = AssignVariableOp(v", i, ", value) {dtype=int32}\ny", i,
                    " = TPUPartitionedCall(x, v", i,
                    ", core) {Tin=list(float, resource), Tout=list(float), f=@body}\n");
  }
  SessionOptions options;
  options.tpu_cores = 2;
  options.threads = 1;
  options.least_work_of_core = 0;
  auto session = Open(text, options);
  // A maximum along the rows cannot be split over cores, one along the columns can.
  const auto axis = [](int i) { return i % 3 == 0 ? 0 : 1; };
  for (int i = 0; i < kVariables; ++i) {
    ASSERT_TRUE(
        session->Run({{"value", Tensor::Vector<int32_t>({axis(i)})}}, {}, {absl::StrCat("set", i)})
            .ok());
  }
  Tensor x = *Tensor::Zeros(Dtype::kFloat, Shape({4, 256}));
  int64_t split = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < kVariables; ++i) {
      // Rows 0 to 3 are 1, 2, 3, 4 in the first column, all else is 0.
      for (int r = 0; r < 4; ++r) x.flat<float>()[r * 256] = static_cast<float>(r + 1);
      auto y = session->Run({{"x", x}}, {absl::StrCat("y", i)}, {});
      ASSERT_TRUE(y.ok()) << y.status();
      for (int r = 0; r < 4; ++r) {
        const float want =
            axis(i) == 0 ? static_cast<float>(r + 1 - 4) / 2 : -255 * static_cast<float>(r + 1) / 2;
        ASSERT_EQ((*y)[0].flat<float>()[r * 256], want) << round << " " << i << " row " << r;
      }
      split += axis(i);
      ASSERT_EQ(session->split_runs(), split);
    }
    // A function keeps eight programs (kMaxSpecializations in session.cc).
    for (int c = 0; c < 2; ++c) {
      EXPECT_LT(session->tpu_core(c).memory_used(), 10 * kWeights) << round;
    }
  }
}

}  // namespace
}  // namespace smelt
