// Sessions with compiled programs under many requests: nothing is left behind, and threads that
// bind, run and outgrow the kept programs at the same time get the answers of one.
//
// SMELT_SOAK_RUNS=1000000 says how many requests the soak has.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "smelt/graph/text.h"
#include "smelt/runtime/session.h"

// Sanitizers keep freed memory for a while, so that pages tell nothing there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SMELT_TEST_KEEPS_FREED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SMELT_TEST_KEEPS_FREED
#endif
#endif

namespace smelt {
namespace {

constexpr char kSmall[] = R"(
x = Placeholder {dtype=float, shape=[?,8]}
w = Const {dtype=float, value=float[8,12]{0.5, -0.25, 0.125, 0.75, -0.5}}
b = Const {dtype=float, value=float[12]{0.25, -1, 2}}
p = MatMul(x, w) {T=float}
q = BiasAdd(p, b) {T=float}
r = Relu(q) {T=float}
axis = Const {dtype=int32, value=int32[]{1}}
s = Split(axis, r) {T=float, num_split=3}
t = Tanh(s) {T=float}
u = Mul(t, s:1) {T=float}
v = AddV2(u, s:2) {T=float}
y = Softmax(v) {T=float}
n = Cumsum(y, axis) {T=float}
)";

// Enough weights for a team to bind them, and enough work for threads to take rows.
constexpr char kLarge[] = R"(
x = Placeholder {dtype=float, shape=[?,12,12,32]}
k1 = Const {dtype=float, value=float[3,3,32,64]{0.01, -0.02, 0.03, 0.005}}
k2 = Const {dtype=float, value=float[3,3,64,64]{0.01, -0.02, 0.015}}
a = Conv2D(x, k1) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
bias = Const {dtype=float, value=float[64]{0.5, -0.25}}
ab = BiasAdd(a, bias) {T=float}
b = Relu(ab) {T=float}
c = Conv2D(b, k2) {T=float, strides=list(1, 2, 2, 1), padding="SAME"}
cb = BiasAdd(c, bias) {T=float}
d = Sigmoid(cb) {T=float}
axes = Const {dtype=int32, value=int32[2]{1, 2}}
e = Mean(d, axes) {T=float}
w1 = Const {dtype=float, value=float[64,512]{0.02, -0.03, 0.01}}
w2 = Const {dtype=float, value=float[512,256]{0.02, -0.01, 0.03, 0.01}}
f = MatMul(e, w1) {T=float}
g = Relu(f) {T=float}
h = MatMul(g, w2) {T=float}
y = Tanh(h) {T=float}
)";

std::unique_ptr<Session> SessionOf(const char* text, int threads, bool compile = true) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::make_unique<Session>(std::shared_ptr<const Graph>(*std::move(graph)),
                                   SessionOptions{.threads = threads, .compile = compile});
}

Tensor Ripples(Shape shape, int64_t rows) {
  shape.Set(0, rows);
  Tensor t = *Tensor::Make(Dtype::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>((i + rows) * 7919 % 1009) / 500 - 1;
  }
  return t;
}

int64_t Runs() {
  const char* runs = std::getenv("SMELT_SOAK_RUNS");
  return runs != nullptr ? std::atoll(runs) : 20000;
}

struct Memory {
  int64_t live = 0, resident = 0;  // bytes
};
Memory MemoryNow() {
  const struct mallinfo2 m = mallinfo2();
  int64_t size = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> size >> pages;
  return {static_cast<int64_t>(m.uordblks + m.hblkhd), pages * sysconf(_SC_PAGESIZE)};
}

// Most requests have a few shapes; some have more shapes in turn than a region keeps programs for.
void RunClients(Session& session, const char* fetch, const Shape& shape, int clients,
                int64_t runs) {
  std::vector<std::thread> threads;
  for (int c = 0; c < clients; ++c) {
    threads.emplace_back([&, c] {
      std::vector<Tensor> inputs;
      for (int64_t rows = 0; rows <= 40; ++rows) inputs.push_back(Ripples(shape, rows));
      for (int64_t i = 0; i < runs / clients; ++i) {
        const int64_t rows = i % 16 == 15 ? (i / 16 + c) % 41 : 1 + (i + c) % 5;
        const auto got = session.Run({{"x", inputs[static_cast<size_t>(rows)]}}, {fetch}, {});
        ASSERT_TRUE(got.ok()) << got.status();
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

void Soak(int clients) {
  const auto session = SessionOf(kSmall, 1);
  const Shape shape({1, 8});
  const int64_t runs = Runs();
  RunClients(*session, "n", shape, clients, std::max<int64_t>(runs / 4, 4000));
  const Memory before = MemoryNow();
  RunClients(*session, "n", shape, clients, runs);
  const Memory after = MemoryNow();
  std::printf("%d clients, %lld runs: live %+lld bytes, resident %+lld bytes\n", clients,
              static_cast<long long>(runs), static_cast<long long>(after.live - before.live),
              static_cast<long long>(after.resident - before.resident));
#if !defined(SMELT_TEST_KEEPS_FREED)
  // As many threads as ever run at once leave a state each with every program that is kept.
  EXPECT_LE(after.live - before.live, 1 << 18);
  EXPECT_LE(after.resident - before.resident, 2 << 20);
#endif
}

TEST(ProgramSoak, OneClientLeavesNothingBehind) { Soak(1); }
TEST(ProgramSoak, FourClientsLeaveNothingBehind) { Soak(4); }

// The first request of every shape binds its program by a team, while others run and bind theirs.
TEST(ProgramThreads, BindAndRunAtOnce) {
  const Shape shape({1, 12, 12, 32});
  const std::vector<int64_t> sizes = {1, 2, 3, 4, 6, 8};
  std::vector<Tensor> inputs, want;
  const auto plain = SessionOf(kLarge, 1, false);
  for (const int64_t rows : sizes) {
    inputs.push_back(Ripples(shape, rows));
    const auto got = plain->Run({{"x", inputs.back()}}, {"y"}, {});
    ASSERT_TRUE(got.ok()) << got.status();
    want.push_back((*got)[0]);
  }
  for (int turn = 0; turn < 3; ++turn) {
    const auto session = SessionOf(kLarge, 2);
    std::vector<std::thread> clients;
    for (size_t c = 0; c < 4; ++c) {
      clients.emplace_back([&, c] {
        for (size_t i = 0; i < 2 * sizes.size(); ++i) {
          const size_t at = (i * (c + 1) + c) % sizes.size();
          const auto got = session->Run({{"x", inputs[at]}}, {"y"}, {});
          ASSERT_TRUE(got.ok()) << got.status();
          ASSERT_EQ((*got)[0].shape(), want[at].shape());
          for (int64_t n = 0; n < want[at].num_elements(); ++n) {
            ASSERT_NEAR((*got)[0].data<float>()[n], want[at].data<float>()[n], 1e-4);
          }
        }
      });
    }
    for (std::thread& t : clients) t.join();
  }
}

// Shapes come and go beyond those that are kept.
TEST(ProgramThreads, ManyShapesAtOnce) {
  const auto plain = SessionOf(kSmall, 1, false), session = SessionOf(kSmall, 2);
  std::vector<std::thread> clients;
  std::vector<Tensor> inputs, want;
  for (int64_t rows = 0; rows < 30; ++rows) {
    inputs.push_back(Ripples(Shape({1, 8}), rows));
    const auto got = plain->Run({{"x", inputs.back()}}, {"n"}, {});
    ASSERT_TRUE(got.ok()) << got.status();
    want.push_back((*got)[0]);
  }
  for (size_t c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (size_t i = 0; i < 300; ++i) {
        const size_t at = (i * 7 + c * 11) % inputs.size();
        const auto got = session->Run({{"x", inputs[at]}}, {"n"}, {});
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_EQ((*got)[0].shape(), want[at].shape());
        for (int64_t n = 0; n < want[at].num_elements(); ++n) {
          ASSERT_NEAR((*got)[0].data<float>()[n], want[at].data<float>()[n], 1e-5);
        }
      }
    });
  }
  for (std::thread& t : clients) t.join();
}

}  // namespace
}  // namespace smelt
