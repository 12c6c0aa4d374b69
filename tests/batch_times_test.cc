// What batching options are chosen from: times of batches on a core, worked out by hand, lists of
// sizes, and which choice is the best.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/substitute.h"
#include "smelt/convert/advise/advise.h"
#include "smelt/convert/advise/tpu_time.h"
#include "smelt/graph/text.h"

namespace smelt {
namespace {

// A function whose program does what `nodes` say with x and w; its result is y.
std::unique_ptr<Graph> Program(absl::string_view nodes) {
  auto graph = ParseGraph(absl::Substitute(R"(
    func host(x: float, w: float) -> (y: float) {
      core = Const {dtype=int32, value=int32[]{0}}
      y = TPUPartitionedCall(x, w, core) {Tin=list(float, float), Tout=list(float), f=@program}
      return y=y
    }
    func program(x: float, w: float) -> (y: float) {
      $0
      return y=y
    }
  )",
                                           nodes));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : nullptr;
}

CoreTime TimeOf(absl::string_view nodes, const PartialShape& x, const PartialShape& w,
                const CoreRates& rates) {
  const auto graph = Program(nodes);
  if (graph == nullptr) return {};
  const PartialShape shapes[] = {x, w};
  auto time = TimeOnCore(*graph->library()->Find("host"), shapes, rates);
  EXPECT_TRUE(time.ok()) << time.status();
  return time.ok() ? *time : CoreTime();
}

constexpr CoreRates kOnlyProducts{1, 1e18}, kOnlyBytes{1e18, 1};

TEST(TimeOnCore, CountsProducts) {
  const auto products = [](absl::string_view nodes, const PartialShape& x, const PartialShape& w) {
    const CoreTime time = TimeOf(nodes, x, w, kOnlyProducts);
    EXPECT_EQ(time.calls, 1);
    EXPECT_EQ(time.unknown, 0);
    return std::lround(time.seconds);
  };
  const auto shape = [](std::initializer_list<int64_t> dims) { return PartialShape::Of(dims); };
  EXPECT_EQ(products("y = MatMul(x, w) {T=float}", shape({8, 256}), shape({256, 512})),
            8 * 256 * 512);
  EXPECT_EQ(
      products("y = MatMul(x, w) {T=float, transpose_a=true}", shape({256, 8}), shape({256, 512})),
      8 * 256 * 512);
  EXPECT_EQ(products("y = BatchMatMulV2(x, w) {T=float}", shape({7, 8, 16}), shape({16, 32})),
            7 * 8 * 16 * 32);
  // Each of 8 x 8 x 16 results meets 3 x 3 x 3 numbers of its filter; of a depthwise one 3 x 3.
  EXPECT_EQ(products("y = Conv2D(x, w) {T=float, strides=list(1, 1, 1, 1), padding=\"SAME\"}",
                     shape({1, 8, 8, 3}), shape({3, 3, 3, 16})),
            8 * 8 * 16 * 27);
  EXPECT_EQ(products("y = DepthwiseConv2dNative(x, w) {T=float, strides=list(1, 1, 1, 1), "
                     "padding=\"SAME\"}",
                     shape({1, 8, 8, 4}), shape({3, 3, 4, 2})),
            8 * 8 * 8 * 9);
  EXPECT_EQ(products("y = Einsum(x, w) {N=2, T=float, equation=\"abc,cd->abd\"}", shape({2, 3, 4}),
                     shape({4, 5})),
            2 * 3 * 4 * 5);
}

TEST(TimeOnCore, CountsBytesOfWhatIsNotFused) {
  // x, w and the result of the product; what follows works on its elements.
  const CoreTime time = TimeOf("m = MatMul(x, w) {T=float}\n y = Relu(m) {T=float}",
                               PartialShape::Of({2, 3}), PartialShape::Of({3, 5}), kOnlyBytes);
  EXPECT_DOUBLE_EQ(time.seconds, (6 + 15 + 10) * 4);
  EXPECT_DOUBLE_EQ(time.transferred, (6 + 15 + 10) * 4);
  // The longer of both, node by node.
  const CoreTime slow = TimeOf("y = MatMul(x, w) {T=float}", PartialShape::Of({2, 3}),
                               PartialShape::Of({3, 5}), {.products = 1, .bytes = 2});
  EXPECT_DOUBLE_EQ(slow.seconds, (6 + 15 + 10) * 4 / 2.);
}

TEST(TimeOnCore, SaysWhatIsUnknown) {
  const CoreTime time = TimeOf("y = MatMul(x, w) {T=float}", PartialShape::Of({2, -1}),
                               PartialShape::Of({-1, 5}), kOnlyProducts);
  EXPECT_EQ(time.unknown, 1);
  EXPECT_EQ(std::lround(time.seconds), 10);
}

std::vector<SimulatedRequest> Requests(std::initializer_list<int64_t> rows) {
  std::vector<SimulatedRequest> out;
  for (const int64_t n : rows) out.push_back({absl::Seconds(out.size()), n});
  return out;
}

TEST(SizeChoices, DoublesFromOneAndFromTheMostFrequentSize) {
  using Lists = std::vector<std::vector<int>>;
  EXPECT_EQ(SizeChoices(Requests({1, 1, 1})), (Lists{{1}, {1, 2}, {1, 2, 4}, {2}, {4}}));
  EXPECT_EQ(SizeChoices(Requests({3, 3, 1})), (Lists{{1},
                                                     {1, 2},
                                                     {1, 2, 4},
                                                     {1, 2, 4, 8},
                                                     {2},
                                                     {2, 4, 8},
                                                     {3},
                                                     {3, 6},
                                                     {3, 6, 12},
                                                     {4},
                                                     {6},
                                                     {8},
                                                     {12}}));
}

SimulatedLoad LoadOf(std::vector<SimulatedRequest> requests) {
  SimulatedLoad load;
  load.duration = absl::Seconds(requests.size());
  load.requests = std::move(requests);
  load.routes = {{0}};
  load.time = [](int, int64_t rows) {
    return BatchTime{absl::ZeroDuration(), absl::Milliseconds(10 + rows)};
  };
  return load;
}

TEST(ChooseBatching, TheFastestThenTheLeastPadding) {
  const auto advice = ChooseBatching(LoadOf(Requests({4, 4, 4})), {{1}, {4}, {8}, {4, 8}}, {});
  ASSERT_TRUE(advice.ok()) << advice.status();
  // {4} and {4, 8} take 14 ms; the first has fewer sizes.
  EXPECT_EQ(advice->options,
            "batch_options { num_batch_threads: 1 max_batch_size: 4 batch_timeout_micros: 0 "
            "allowed_batch_sizes: 4 max_enqueued_batches: 100 }");
  EXPECT_EQ(advice->choices[0].p99_latency, 14);
  EXPECT_EQ(advice->rows, 12);
  ASSERT_EQ(advice->choices.size(), 4u);
  // {8} pads 4 rows, {1} takes four batches.
  EXPECT_EQ(advice->choices[2].options.allowed_batch_sizes, std::vector<int>{8});
  EXPECT_EQ(advice->choices[2].p99_latency, 18);
  EXPECT_DOUBLE_EQ(advice->choices[2].padding, 0.5);
  EXPECT_EQ(advice->choices[3].p99_latency, 44);
}

TEST(ChooseBatching, WithinABudgetTheLeastLoad) {
  // Alone 11 ms each; both in one batch 12 ms, if the first waits 10 ms for the second.
  std::vector<SimulatedRequest> pair = {{absl::ZeroDuration(), 1}, {absl::Milliseconds(10), 1}};
  const auto lists = {std::vector<int>{1}, std::vector<int>{2}};
  const auto fast = ChooseBatching(LoadOf(pair), lists, {});
  ASSERT_TRUE(fast.ok()) << fast.status();
  EXPECT_EQ(fast->choices[0].options.allowed_batch_sizes, std::vector<int>{1});
  const auto thrifty = ChooseBatching(LoadOf(pair), lists, 25);
  ASSERT_TRUE(thrifty.ok()) << thrifty.status();
  EXPECT_EQ(thrifty->choices[0].options.allowed_batch_sizes, std::vector<int>{2});
  EXPECT_EQ(thrifty->choices[0].options.batch_timeout_micros, 20000);
  EXPECT_EQ(thrifty->choices[0].p99_latency, 22);
  const Status none = ChooseBatching(LoadOf(pair), lists, 5).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(none)) << none;
}

TEST(ChooseBatching, NothingKeepsUp) {
  SimulatedLoad load = LoadOf(Requests({1, 1, 1, 1}));
  load.duration = absl::Milliseconds(20);
  const Status s = ChooseBatching(load, {{1}}, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(s)) << s;
  EXPECT_TRUE(absl::StrContains(s.message(), "no choice keeps up with 200 requests a second")) << s;
  EXPECT_TRUE(absl::StrContains(s.message(), "cores would be busy 220 % of the time")) << s;
}

}  // namespace
}  // namespace smelt
