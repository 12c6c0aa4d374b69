// When nodes could run at the earliest and must have run at the latest (analysis/estimate), and
// estimates of graphs that are made to harm. What each op takes and how a device runs them is in
// tests/estimates.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "smelt/analysis/estimate/graph_estimate.h"
#include "smelt/analysis/estimate/schedule.h"
#include "smelt/analysis/xla_shapes.h"
#include "tests/graph_of_text.h"

namespace smelt {
namespace {

const DeviceProperties kCpu = {.name = "/job:localhost/replica:0/task:0/cpu:0",
                               .type = "CPU",
                               .frequency = 1000,
                               .num_cores = 4,
                               .bandwidth = 32};

// Names by time; of equal times one stays.
std::vector<std::string> InOrder(const Graph& graph, const std::vector<int64_t>& times) {
  std::map<int64_t, std::string> ordered;
  for (const Node* n : graph.Nodes()) ordered[times[static_cast<size_t>(n->id())]] = n->name();
  std::vector<std::string> names;
  for (const auto& [time, name] : ordered) names.push_back(name);
  return names;
}

int64_t At(const Graph& graph, const std::vector<int64_t>& times, absl::string_view name) {
  return times[static_cast<size_t>(graph.Find(name)->id())];
}

struct Scheduled {
  explicit Scheduled(absl::string_view text)
      : graph(MustParse(text)),
        shapes(InferSymbolicShapes(*graph, XlaShapeRules())),
        placement({&kCpu, 1}) {}
  std::vector<int64_t> Earliest() { return EarliestFinishTimes(*graph, shapes, placement); }
  std::vector<int64_t> Required(std::span<const int64_t> finish) {
    return RequiredFinishTimes(*graph, shapes, placement, finish);
  }

  std::unique_ptr<Graph> graph;
  ShapeTable shapes;
  Placement placement;
};

constexpr absl::string_view kChain = R"(
  start = Const {value=float[10,1]{1}}
  a = Square(start)
  b = Square(a)
  c = Square(b)
  d = Square(c)
  sum = AddN(d)
)";

// upstream static_schedule_test BasicGraph
TEST(StaticScheduleTest, BasicGraph) {
  Scheduled s(kChain);
  const std::vector<int64_t> times = s.Earliest();
  EXPECT_EQ(InOrder(*s.graph, times),
            (std::vector<std::string>{"start", "a", "b", "c", "d", "sum"}));
  EXPECT_EQ(At(*s.graph, times, "start"), 1);
  // 80 bytes at 32 KB/s, and 10 operations at 4 a nanosecond.
  EXPECT_EQ(At(*s.graph, times, "b") - At(*s.graph, times, "a"), 2'500'000 + 3);
}

// upstream static_schedule_test BasicGraphWithCtrlDependencies
TEST(StaticScheduleTest, BasicGraphWithCtrlDependencies) {
  Scheduled s(R"(
    a = Const {value=float[10,10]{0}}
    b = AddN(a)
    c = Identity(b)
    d = Identity(c)
    e = AddN(d, ^c)
  )");
  const std::vector<int64_t> times = s.Earliest();
  EXPECT_EQ(InOrder(*s.graph, times), (std::vector<std::string>{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(At(*s.graph, times, "a"), 1);
}

// upstream static_schedule_test RequiredTimes
TEST(StaticScheduleTest, RequiredTimes) {
  Scheduled s(kChain);
  const std::vector<int64_t> zero(static_cast<size_t>(s.graph->max_id()), 0);
  const std::vector<int64_t> times = s.Required(zero);
  EXPECT_EQ(InOrder(*s.graph, times),
            (std::vector<std::string>{"start", "a", "b", "c", "d", "sum"}));
  EXPECT_EQ(At(*s.graph, times, "sum"), 0);
}

TEST(StaticScheduleTest, WhatCannotBeginHasNoTime) {
  Scheduled s(R"(
    x = Placeholder {dtype=float, shape=[]}
    m = Merge(x, next)
    next = NextIteration(m)
    after = Neg(m)
    other = Merge(turn, turn) {T=float}
    turn = NextIteration(other) {T=float}
  )");
  const std::vector<int64_t> times = s.Earliest();
  EXPECT_EQ(At(*s.graph, times, "m"), 2);
  EXPECT_GT(At(*s.graph, times, "after"), 2);
  EXPECT_EQ(At(*s.graph, times, "other"), -1);
  EXPECT_EQ(At(*s.graph, times, "turn"), -1);
}

TEST(EstimateTest, NoNodeReady) {
  Scheduled s(R"(
    other = Merge(turn, turn) {T=float}
    turn = NextIteration(other) {T=float}
  )");
  const Node* fetch = s.graph->Find("turn");
  const auto none = [](const Node&) { return false; };
  const auto one = [](const Node&, int) { return int64_t{1}; };
  EXPECT_EQ(SimulateRun(*s.graph, s.placement, {{&fetch, 1}, none, one}).status(),
            InvalidArgument("No ready nodes in the graph."));
}

TEST(EstimateTest, HugeSizesSaturate) {
  Scheduled s(R"(
    x = Placeholder {dtype=double, shape=[4611686018427387904,1]}
    y = Placeholder {dtype=double, shape=[1,4611686018427387904]}
    p = MatMul(x, y)
    w = Conv2D(i, f) {strides=list(1, 9223372036854775807, 9223372036854775807, 1), padding="SAME"}
    i = Placeholder {dtype=float, shape=[1,9223372036854775807,1,1]}
    f = Placeholder {dtype=float, shape=[1,1,1,1]}
    z = Conv2D(i, f) {strides=list(1, 0, -1, 1), padding="SAME"}
  )");
  for (const Node* n : s.graph->Nodes()) {
    const OpEstimate e = EstimateOp(*n, s.shapes);
    EXPECT_LE(e.flops, kMostEstimated) << n->name();
    EXPECT_GE(e.flops, 0) << n->name();
    EXPECT_GE(e.bytes_read + e.bytes_written, 0) << n->name();
    EXPECT_GE(TimeOf(e, {.gflops = 0, .gb_per_second = 0}).total, 0) << n->name();
  }
  EXPECT_EQ(EstimateOp(*s.graph->Find("p"), s.shapes).flops, kMostEstimated);
}

TEST(EstimateTest, SumsOfHugeSizesSaturate) {
  std::string text = "x = Placeholder {dtype=double, shape=[4611686018427387904]}\nn0 = Neg(x)\n";
  std::string all = "n0";
  for (int i = 1; i < 100; ++i) {
    absl::StrAppend(&text, "n", i, " = Neg(n", i - 1, ")\n");
    absl::StrAppend(&all, ", n", i);
  }
  absl::StrAppend(&text, "last = AddN(", all, ")\n");
  Scheduled s(text);
  const std::string feeds[] = {"x"}, fetches[] = {"last"};
  const GraphEstimate estimate = EstimateGraph(*s.graph, feeds, fetches, {});
  EXPECT_EQ(estimate.flops, kMostEstimated);
  EXPECT_EQ(estimate.bytes, kMostEstimated);
  EXPECT_EQ(estimate.nanoseconds, kMostEstimated);
  EXPECT_EQ(estimate.peak_bytes, kMostEstimated);
  const std::vector<int64_t> earliest = s.Earliest();
  EXPECT_EQ(At(*s.graph, earliest, "last"), kMostEstimated);
  EXPECT_EQ(At(*s.graph, s.Required(earliest), "x"), -kMostEstimated);
}

TEST(EstimateTest, UnknownShapesAreSaid) {
  Scheduled s(R"(
    x = Placeholder {dtype=float, shape=[?,3]}
    y = Placeholder {dtype=float, shape=[2,3]}
    a = Exp(x)
    b = Exp(y)
    c = Selu(y)
    i = Identity(x)
  )");
  EXPECT_FALSE(EstimateOp(*s.graph->Find("a"), s.shapes).accurate);
  EXPECT_EQ(EstimateOp(*s.graph->Find("a"), s.shapes).flops, 3 * 34);
  EXPECT_TRUE(EstimateOp(*s.graph->Find("b"), s.shapes).accurate);
  EXPECT_FALSE(EstimateOp(*s.graph->Find("c"), s.shapes).accurate);
  EXPECT_FALSE(EstimateOp(*s.graph->Find("i"), s.shapes).accurate);
}

TEST(EstimateTest, FusedOpsAreMoreThanTensorFlowKnows) {
  Scheduled s(R"(
    x = Placeholder {dtype=float, shape=[2,3]}
    w = Placeholder {dtype=float, shape=[3,5]}
    b = Placeholder {dtype=float, shape=[5]}
    y = _FusedMatMul(x, w, b) {num_args=1, fused_ops=list("BiasAdd")}
  )");
  const Node& y = *s.graph->Find("y");
  EXPECT_EQ(EstimateOp(y, s.shapes).flops, 0);
  EXPECT_EQ(EstimateOp(y, s.shapes, KnownOps::kMore).flops, 60);
}

TEST(EstimateTest, CallsTakeWhatFunctionsTake) {
  const auto graph = MustParse(R"(
    func twice(x: float) -> (y: float) {
      a = Neg(x)
      b = Neg(a)
      return y=b
    }
    func again(x: float) -> (y: float) {
      a = PartitionedCall(x) {f=@again, Tin=list(float), Tout=list(float)}
      b = Exp(a) {T=float}
      return y=b
    }
    x = Placeholder {dtype=float, shape=[4]}
    one = PartitionedCall(x) {f=@twice, Tin=list(float), Tout=list(float)}
    two = PartitionedCall(one) {f=@twice, Tin=list(float), Tout=list(float)}
    unread = Exp(x)
    self = PartitionedCall(x) {f=@again, Tin=list(float), Tout=list(float)}
  )");
  const std::string feeds[] = {"x"}, fetches[] = {"two:0"}, recursive[] = {"self"};
  const GraphEstimate twice = EstimateGraph(*graph, feeds, fetches, {});
  EXPECT_EQ(twice.flops, 2 * 2 * 4);
  EXPECT_EQ(twice.bytes, 2 * 2 * 32);
  EXPECT_EQ(twice.inaccurate, 0);
  // The calls, the argument, and of each body three nodes.
  EXPECT_EQ(twice.nodes, 3 + 2 * 3);
  const GraphEstimate self = EstimateGraph(*graph, feeds, recursive, {});
  EXPECT_GE(self.flops, 34);
  EXPECT_LE(self.nodes, 8);
  // What nobody reads, where nothing is said to be fetched.
  EXPECT_EQ(EstimateGraph(*graph, feeds, {}, {}).flops, twice.flops + self.flops + 4 * 34);
}

// A Merge runs once for each of its inputs, and one node is read by all: quadratic time would be
// minutes.
TEST(EstimateTest, ManyReadersAndManyInputs) {
  constexpr int kNodes = 200'000;
  Graph graph(std::make_shared<FunctionLibrary>());
  Node* x = graph.AddConst("x", Tensor::Scalar<float>(1));
  std::vector<Endpoint> all;
  AttrMap attrs;
  attrs.Set("T", Dtype::kFloat);
  for (int i = 0; i < kNodes; ++i) {
    const auto n = graph.Add("n", "Neg", {{x, 0}}, attrs);
    ASSERT_TRUE(n.ok());
    all.push_back({*n, 0});
  }
  attrs.Set("N", int64_t{kNodes});
  const auto last = graph.Add("last", "Merge", all, attrs);
  ASSERT_TRUE(last.ok());
  const ShapeTable shapes = InferSymbolicShapes(graph, XlaShapeRules());
  Placement placement({&kCpu, 1});
  const Node* fetch = *last;
  const auto none = [](const Node&) { return false; };
  const auto one = [](const Node&, int) { return int64_t{1}; };
  const auto schedule = SimulateRun(graph, placement, {{&fetch, 1}, none, one});
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->finish, 2 * kNodes + 1);
  EXPECT_EQ(schedule->of(*fetch).finish, schedule->finish);
  // All inputs of the Merge, its two outputs and the constant: the run takes less than a
  // millisecond, and the memory model sees microseconds.
  EXPECT_GT(PeakMemoryOf(graph, shapes, placement, *schedule)[0].bytes, 4 * 1000);
  const std::vector<int64_t> earliest = EarliestFinishTimes(graph, shapes, placement);
  EXPECT_GT(At(graph, earliest, "last"), 2);
  EXPECT_EQ(RequiredFinishTimes(graph, shapes, placement, earliest).size(), earliest.size());
}

}  // namespace
}  // namespace smelt
