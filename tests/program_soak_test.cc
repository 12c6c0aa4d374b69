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

// Layers side by side that cannot do all that follows them: what a team bound for the first of them
// does not fit those behind, which are bound anew. Their results lie in one value.
constexpr char kDeclining[] = R"(
x = Placeholder {dtype=float, shape=[?,6,6,32]}
k1 = Const {dtype=float, value=float[3,3,32,64]{0.01, -0.02, 0.03, 0.005}}
k2 = Const {dtype=float, value=float[3,3,32,64]{0.02, -0.01, 0.015}}
k3 = Const {dtype=float, value=float[3,3,64,64]{0.01, -0.03, 0.02, 0.01, -0.015}}
bias = Const {dtype=float, value=float[64]{0.5, -0.25}}
a = Conv2D(x, k1) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
ab = BiasAdd(a, bias) {T=float}
ar = Relu(ab) {T=float}
b = Conv2D(x, k2) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
bb = BiasAdd(b, bias) {T=float}
br = Relu6(bb) {T=float}
sum = AddV2(ar, br) {T=float}
sr = Relu(sum) {T=float}
c = Conv2D(sr, k3) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
cr = Relu(c) {T=float}
more = AddV2(cr, sum) {T=float}
axis = Const {dtype=int32, value=int32[]{3}}
all = ConcatV2(more, sr, axis) {T=float, N=2, Tidx=int32}
parts = Split(axis, all) {T=float, num_split=2}
t = Tanh(parts) {T=float}
y = Mul(t, parts:1) {T=float}
)";

// A loop that is a scan, whose product leaves it: its body is a program of its own.
constexpr char kLoop[] = R"(
func more(i: int32, n: int32, h: float, out: variant, xs: variant) -> (go: bool) {
go = Less(i, n) {T=int32}
return go=go
}
func cell(i: int32, n: int32, h: float, out: variant, xs: variant) -> (i1: int32, n1: int32, h1: float, out1: variant, xs1: variant) {
one = Const {dtype=int32, value=int32[]{1}}
of = Const {dtype=int32, value=int32[2]{-1, 8}}
x = TensorListGetItem(xs, i, of) {element_dtype=float}
w = Const {dtype=float, value=float[8,8]{0.5, -0.25, 0.125, 0.75}}
u = Const {dtype=float, value=float[8,8]{0.25, 0.5, -0.125}}
xw = MatMul(x, w) {T=float}
hu = MatMul(h, u) {T=float}
z = AddV2(xw, hu) {T=float}
h2 = Tanh(z) {T=float}
out2 = TensorListSetItem(out, i, h2) {element_dtype=float}
i2 = AddV2(i, one) {T=int32}
return i1=i2 n1=n h1=h2 out1=out2 xs1=xs
}
x = Placeholder {dtype=float, shape=[?,2,8]}
h = Const {dtype=float, value=float[2,8]{0}}
zero = Const {dtype=int32, value=int32[]{0}}
of = Const {dtype=int32, value=int32[2]{2, 8}}
shape = Shape(x) {T=float, out_type=int32}
at = Const {dtype=int32, value=int32[1]{0}}
behind = Const {dtype=int32, value=int32[1]{1}}
n = StridedSlice(shape, at, behind, behind) {T=int32, Index=int32, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=1}
xs = TensorListFromTensor(x, of) {element_dtype=float, shape_type=int32}
list = TensorListReserve(of, n) {element_dtype=float, shape_type=int32}
loop = StatelessWhile(zero, n, h, list, xs) {T=list(int32, int32, float, variant, variant), cond=@more, body=@cell}
y = TensorListStack(loop:3, of) {element_dtype=float, num_elements=-1}
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

// Four clients of one session, which compiles in turns, get what the plain executor says.
void RunAtOnce(const char* text, const Shape& shape, const std::vector<int64_t>& sizes) {
  std::vector<Tensor> inputs, want;
  const auto plain = SessionOf(text, 1, false);
  for (const int64_t rows : sizes) {
    inputs.push_back(Ripples(shape, rows));
    const auto got = plain->Run({{"x", inputs.back()}}, {"y"}, {});
    ASSERT_TRUE(got.ok()) << got.status();
    want.push_back((*got)[0]);
  }
  for (int turn = 0; turn < 3; ++turn) {
    const auto session = SessionOf(text, 2);
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

// The first request of every shape binds its program by a team, while others run and bind theirs.
TEST(ProgramThreads, BindAndRunAtOnce) {
  RunAtOnce(kLarge, Shape({1, 12, 12, 32}), {1, 2, 3, 4, 6, 8});
}
TEST(ProgramThreads, BindAnewAtOnce) {
  RunAtOnce(kDeclining, Shape({1, 6, 6, 32}), {1, 2, 3, 5, 0, 4});
}
TEST(ProgramThreads, LoopsAtOnce) { RunAtOnce(kLoop, Shape({1, 2, 8}), {1, 2, 7, 3, 0, 12}); }

// Sessions that live at once share nothing but what the process keeps: teams, caches of primitives,
// memory for weights.
TEST(ProgramThreads, SessionsAtOnce) {
  std::vector<std::thread> clients;
  for (size_t c = 0; c < 3; ++c) {
    clients.emplace_back([c] {
      if (c == 0) RunAtOnce(kDeclining, Shape({1, 6, 6, 32}), {1, 3});
      if (c == 1) RunAtOnce(kLarge, Shape({1, 12, 12, 32}), {2, 4});
      if (c == 2) RunAtOnce(kLoop, Shape({1, 2, 8}), {5, 9});
    });
  }
  for (std::thread& t : clients) t.join();
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
