// The simulation of batching: schedules worked out by hand, and the batches that a BatchFunction
// makes of the same requests.
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/substitute.h"
#include "smelt/convert/advise/simulate.h"
#include "smelt/graph/text.h"
#include "smelt/kernels/batch/batch_scheduler.h"
#include "smelt/runtime/session.h"

namespace smelt {
namespace {

BatchOptions Options(int threads, int max, absl::Duration timeout, std::vector<int32_t> allowed) {
  BatchOptions o;
  o.num_threads = threads;
  o.max_batch_size = max;
  o.timeout_micros = static_cast<int32_t>(absl::ToInt64Microseconds(timeout));
  o.allowed_batch_sizes = std::move(allowed);
  o.split = true;
  return o;
}

// Requests {milliseconds, rows}; a batch takes a millisecond and four on a core, whatever its size.
SimulatedLoad Load(const std::vector<std::pair<int, int>>& requests) {
  SimulatedLoad load;
  for (const auto& [ms, rows] : requests) load.requests.push_back({absl::Milliseconds(ms), rows});
  load.routes = {{0}};
  load.duration = absl::Milliseconds(20);
  load.time = [](int, int64_t) { return BatchTime{absl::Milliseconds(1), absl::Milliseconds(4)}; };
  return load;
}

SimulationResult Simulated(const BatchOptions& options, const SimulatedLoad& load) {
  auto result = SimulateBatching(options, load);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : SimulationResult();
}

std::vector<int64_t> Padded(const SimulationResult& r) {
  std::vector<int64_t> sizes;
  for (const SimulatedBatch& b : r.batches) sizes.push_back(b.padded);
  return sizes;
}

TEST(SimulateBatching, BatchesWaitForTheTimeout) {
  // The first batch has the rows of both requests and closes at 10, is prepared at 11 and done at
  // 15; the second one closes at 22 and is done at 27.
  const SimulationResult r =
      Simulated(Options(1, 4, absl::Milliseconds(10), {2, 4}), Load({{0, 1}, {4, 2}, {12, 1}}));
  ASSERT_EQ(r.batches.size(), 2u);
  EXPECT_EQ(r.batches[0].rows, 3);
  EXPECT_EQ(r.batches[0].start, absl::Milliseconds(10));
  EXPECT_EQ(r.batches[1].rows, 1);
  EXPECT_EQ(r.batches[1].start, absl::Milliseconds(22));
  EXPECT_EQ(Padded(r), (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(r.mean_latency, absl::Milliseconds(15 + 11 + 15) / 3);
  EXPECT_EQ(r.p99_latency, absl::Milliseconds(15));
  EXPECT_EQ(r.mean_wait, absl::Milliseconds(10 + 6 + 10) / 3);
  EXPECT_EQ(r.p99_wait, absl::Milliseconds(10));
  EXPECT_EQ(r.answered, 3);
  EXPECT_DOUBLE_EQ(r.padding, 2. / 6);
  EXPECT_DOUBLE_EQ(r.rows_per_batch, 2);
  EXPECT_DOUBLE_EQ(r.batches_per_second, 100);
  EXPECT_DOUBLE_EQ(r.core_load, 8. / 20);
  EXPECT_DOUBLE_EQ(r.thread_load, 10. / 20);
  EXPECT_TRUE(r.KeepsUp());
}

TEST(SimulateBatching, ABusyThreadGathersWithoutATimeout) {
  // The first batch runs from 0 to 5, the other two requests in one from 5 to 10.
  const SimulationResult r =
      Simulated(Options(1, 4, absl::ZeroDuration(), {2, 4}), Load({{0, 1}, {1, 1}, {2, 2}}));
  EXPECT_EQ(Padded(r), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(r.mean_latency, absl::Milliseconds(5 + 9 + 8) / 3);
  EXPECT_EQ(r.mean_wait, absl::Milliseconds(0 + 4 + 3) / 3);
}

TEST(SimulateBatching, ThreadsShareTheCores) {
  SimulatedLoad load = Load({{0, 4}, {0, 4}});
  const BatchOptions two = Options(2, 4, absl::Seconds(1), {4});
  // Both are prepared at 1; the second one waits for the core until 5.
  SimulationResult r = Simulated(two, load);
  EXPECT_EQ(r.mean_latency, absl::Milliseconds(5 + 9) / 2);
  EXPECT_EQ(r.mean_wait, absl::Milliseconds(0 + 4) / 2);
  // One thread prepares the second one after the first is done.
  r = Simulated(Options(1, 4, absl::Seconds(1), {4}), load);
  EXPECT_EQ(r.p99_latency, absl::Milliseconds(10));
  load.cores = 2;
  r = Simulated(two, load);
  EXPECT_EQ(r.p99_latency, absl::Milliseconds(5));
  EXPECT_DOUBLE_EQ(r.core_load, 8. / 40);
}

TEST(SimulateBatching, LargeRequestsLieInSeveralBatches) {
  // Three of the ten rows fill the batch that is open, which runs from 1 to 6; four run from 6 to
  // 11, when the timeout closes the batch of the last three, too.
  const SimulationResult r =
      Simulated(Options(1, 16, absl::Milliseconds(10), {2, 4}), Load({{0, 1}, {1, 10}}));
  ASSERT_EQ(r.batches.size(), 3u);
  EXPECT_EQ(r.batches[2].rows, 3);
  EXPECT_EQ(r.batches[2].start, absl::Milliseconds(11));
  EXPECT_EQ(Padded(r), (std::vector<int64_t>{4, 4, 4}));
  EXPECT_EQ(r.mean_latency, absl::Milliseconds(6 + 15) / 2);
  EXPECT_EQ(r.mean_wait, absl::Milliseconds(1 + 10) / 2);
}

TEST(SimulateBatching, AFullQueueRejects) {
  BatchOptions options = Options(1, 1, absl::ZeroDuration(), {});
  options.split = false;
  options.max_enqueued_batches = 2;
  const SimulationResult r = Simulated(options, Load({{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(r.rejected, 1);
  EXPECT_EQ(r.answered, 3);
  EXPECT_FALSE(r.KeepsUp());
}

TEST(SimulateBatching, WhatCannotBeDoneInTimeDoesNotKeepUp) {
  std::vector<std::pair<int, int>> requests;
  for (int i = 0; i < 20; ++i) requests.push_back({i, 1});
  BatchOptions options = Options(2, 1, absl::ZeroDuration(), {1});
  options.max_enqueued_batches = 100;
  const SimulationResult r = Simulated(options, Load(requests));
  EXPECT_EQ(r.rejected, 0);
  EXPECT_DOUBLE_EQ(r.core_load, 80. / 20);
  EXPECT_FALSE(r.KeepsUp());
}

TEST(SimulateBatching, RequestsPassTheQueuesOfTheirRoute) {
  SimulatedLoad load = Load({{0, 1}, {0, 1}});
  load.queues = 2;
  load.routes = {{0, 1}, {1}};
  load.requests[1].route = 1;
  load.cores = 2;
  // The first one reaches queue 1 at 5, when the other has left it.
  const SimulationResult r = Simulated(Options(1, 4, absl::ZeroDuration(), {4}), load);
  EXPECT_EQ(r.batches.size(), 3u);
  EXPECT_EQ(r.mean_latency, absl::Milliseconds(10 + 5) / 2);
  EXPECT_EQ(r.p99_wait, absl::ZeroDuration());
}

TEST(SimulateBatching, ErrorsAreThoseOfTheQueue) {
  const Status s =
      SimulateBatching(Options(1, 8, absl::ZeroDuration(), {8}), Load({{0, 9}})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s));
  EXPECT_EQ(s.message(), "Task size 9 is larger than maximum input batch size 8");
  EXPECT_EQ(SimulateBatching(Options(1, 0, absl::ZeroDuration(), {}), Load({})).status().message(),
            "input_batch_size_limit must be positive; was 0");
}

// Every run of the function adds its elements to `seen`, then waits for a token.
constexpr char kModel[] = R"(
  x = Placeholder {dtype=float, shape=shape(?)}
  seen = VarHandleOp {dtype=int32, shape=[], shared_name="seen"}
  zero = Const {dtype=int32, value=int32[]{0}}
  init = AssignVariableOp(seen, zero) {dtype=int32}
  get = ReadVariableOp(seen) {dtype=int32}
  tokens = FIFOQueueV2 {component_types=list(int32), shared_name="tokens"}
  token = Const {dtype=int32, value=int32[]{1}}
  open = QueueEnqueueV2(tokens, token) {Tcomponents=list(int32)}
  y = BatchFunction(x, seen, tokens) {f=@f, Tin=list(float), Tcaptured=list(resource, resource), Tout=list(float), $0}
  func f(x: float, v: resource, q: resource) -> (y: float) {
    size = Size(x) {T=float, out_type=int32}
    add = AssignAddVariableOp(v, size) {dtype=int32}
    token = QueueDequeueV2(q, ^add) {component_types=list(int32)}
    y = Neg(x, ^token) {T=float}
    return y=y
  }
)";

int Seen(Session& session) {
  auto out = session.Run({}, {"get"}, {});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0].flat<int32_t>()[0] : 0;
}

int64_t Waiting(Session& session) {
  const auto found = session.resources().Find("localhost", "BatchFunction", "y");
  return found == nullptr ? 0 : static_cast<BatchScheduler&>(*found).waiting();
}

// The sizes of the batches, in order, when the rows come while the first batch of one row runs.
std::vector<int64_t> RealBatches(absl::string_view attrs, const std::vector<int>& burst) {
  auto graph = ParseGraph(absl::Substitute(kModel, attrs));
  EXPECT_TRUE(graph.ok()) << graph.status();
  SessionOptions options;
  options.threads = 1;
  Session session(std::shared_ptr<const Graph>(*std::move(graph)), options);
  EXPECT_TRUE(session.Run({}, {}, {"init"}).ok());
  std::vector<std::thread> clients;
  const auto ask = [&](int rows) {
    clients.emplace_back([&session, rows] {
      const auto out =
          session.Run({{"x", *Tensor::Zeros(Dtype::kFloat, Shape({rows, 1}))}}, {"y"}, {});
      EXPECT_TRUE(out.ok()) << out.status();
    });
  };
  std::vector<int64_t> sizes;
  int seen = 0;
  const auto next_batch = [&] {
    while (Seen(session) == seen) std::this_thread::yield();
    sizes.push_back(Seen(session) - seen);
    seen = Seen(session);
  };
  ask(1);
  next_batch();
  for (const int rows : burst) {
    const int64_t before = Waiting(session);
    ask(rows);
    while (Waiting(session) == before) std::this_thread::yield();
  }
  while (true) {
    const bool last = Waiting(session) == 0;
    EXPECT_TRUE(session.Run({}, {}, {"open"}).ok());
    if (last) break;
    next_batch();
  }
  for (std::thread& client : clients) client.join();
  return sizes;
}

TEST(SimulateBatching, MakesTheBatchesThatBatchFunctionMakes) {
  const std::vector<int> burst = {3, 1, 5, 2, 7, 4, 1, 1, 6, 8, 2};
  for (const bool split : {true, false}) {
    for (const std::vector<int32_t>& allowed :
         {std::vector<int32_t>{2, 4, 8}, std::vector<int32_t>{8}, std::vector<int32_t>{}}) {
      BatchOptions options = Options(1, 8, absl::ZeroDuration(), allowed);
      options.split = split;
      options.max_enqueued_batches = 100;
      SimulatedLoad load = Load({{0, 1}});
      for (const int rows : burst) load.requests.push_back({absl::Milliseconds(1), rows});
      const std::string attrs = absl::Substitute(
          "num_batch_threads=1, max_batch_size=8, batch_timeout_micros=0, "
          "max_enqueued_batches=100, enable_large_batch_splitting=$0$1",
          split ? "true" : "false",
          allowed.empty() ? ""
                          : absl::StrCat(", allowed_batch_sizes=list(",
                                         allowed.size() == 1 ? "8" : "2, 4, 8", ")"));
      EXPECT_EQ(Padded(Simulated(options, load)), RealBatches(attrs, burst)) << attrs;
    }
  }
}

}  // namespace
}  // namespace smelt
