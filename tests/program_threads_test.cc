// Sessions with compiled programs: threads that bind, run, cancel and outgrow the kept programs at
// the same time get the answers of one.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/program_sessions.h"

namespace smelt {
namespace {

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

// Heads that read parts of one product.
constexpr char kHeads[] = R"(
x = Placeholder {dtype=float, shape=[?,24]}
w = Const {dtype=float, value=float[24,72]{0.02, -0.03, 0.05, 0.01, -0.04}}
all = MatMul(x, w) {T=float}
axis = Const {dtype=int32, value=int32[]{-1}}
parts = Split(axis, all) {T=float, num_split=3}
heads = Const {dtype=int32, value=int32[4]{1, -1, 3, 8}}
q = Reshape(parts, heads) {T=float, Tshape=int32}
k = Reshape(parts:1, heads) {T=float, Tshape=int32}
v = Reshape(parts:2, heads) {T=float, Tshape=int32}
perm = Const {dtype=int32, value=int32[4]{0, 2, 1, 3}}
qt = Transpose(q, perm) {T=float, Tperm=int32}
kt = Transpose(k, perm) {T=float, Tperm=int32}
vt = Transpose(v, perm) {T=float, Tperm=int32}
s = BatchMatMulV2(qt, kt) {T=float, adj_x=false, adj_y=true}
p = Softmax(s) {T=float}
o = BatchMatMulV2(p, vt) {T=float, adj_x=false, adj_y=false}
y = Transpose(o, perm) {T=float, Tperm=int32}
)";

// A branch that the numbers choose, and a loop that ends when they are small.
constexpr char kFlow[] = R"(
func more(x: float) -> (go: bool) {
axes = Const {dtype=int32, value=int32[2]{0, 1}}
s = Square(x) {T=float}
sum = Sum(s, axes) {T=float, Tidx=int32}
least = Const {dtype=float, value=float[]{0.5}}
go = Greater(sum, least) {T=float}
return go=go
}
func half(x: float) -> (y: float) {
w = Const {dtype=float, value=float[8,8]{0.25, -0.25, 0.125}}
y = MatMul(x, w) {T=float}
return y=y
}
func one(x: float) -> (y: float) {
y = Tanh(x) {T=float}
return y=y
}
func other(x: float) -> (y: float) {
w = Const {dtype=float, value=float[8,8]{0.5, -0.125}}
p = MatMul(x, w) {T=float}
y = Relu(p) {T=float}
return y=y
}
x = Placeholder {dtype=float, shape=[?,8]}
axes = Const {dtype=int32, value=int32[2]{0, 1}}
sum = Sum(x, axes) {T=float, Tidx=int32}
zero = Const {dtype=float, value=float[]{0}}
on = Less(sum, zero) {T=float}
b = StatelessIf(on, x) {Tcond=bool, Tin=list(float), Tout=list(float), then_branch=@one, else_branch=@other}
loop = StatelessWhile(x) {T=list(float), cond=@more, body=@half}
y = AddV2(b, loop) {T=float}
)";

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

TEST(ProgramThreads, HeadsAtOnce) { RunAtOnce(kHeads, Shape({1, 24}), {1, 4, 7, 2, 16, 33}); }
TEST(ProgramThreads, BranchesAtOnce) { RunAtOnce(kFlow, Shape({1, 8}), {1, 2, 5, 3, 8, 4}); }

// One row by weights of which each thread takes rows: sums of integers, which no order changes.
TEST(ProgramThreads, RowByFarWeights) {
  constexpr int64_t kDepth = 1100, kColumns = 513;
  constexpr char kRow[] = R"(
x = Placeholder {dtype=float, shape=[1,1100]}
w = Placeholder {dtype=float, shape=[1100,513]}
b = Const {dtype=float, value=float[513]{7, -70, 11}}
more = Const {dtype=float, value=float[1,513]{1, 2, -3}}
p = MatMul(x, w) {T=float}
q = BiasAdd(p, b) {T=float}
s = AddV2(q, more) {T=float}
y = Relu(s) {T=float}
z = Relu(q) {T=float}
)";
  const auto numbers = [](const Shape& shape) {
    Tensor t = *Tensor::Make(Dtype::kFloat, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.data<float>()[i] = static_cast<float>(i * 7919 % 31 - 15);
    }
    return t;
  };
  Tensor x = numbers(Shape({1, kDepth}));
  const Tensor w = numbers(Shape({kDepth, kColumns}));
  for (const char* result : {"y", "z"}) {
    for (const bool nan : {false, true}) {
      x.data<float>()[kDepth - 1] = nan ? NAN : 3;
      const auto want = SessionOf(kRow, 1, false)->Run({{"x", x}, {"w", w}}, {result}, {});
      ASSERT_TRUE(want.ok()) << want.status();
      for (const int threads : {1, 2, 3, 5}) {
        const auto got = SessionOf(kRow, threads)->Run({{"x", x}, {"w", w}}, {result}, {});
        ASSERT_TRUE(got.ok()) << got.status();
        for (int64_t n = 0; n < kColumns; ++n) {
          const float a = (*got)[0].data<float>()[n], b = (*want)[0].data<float>()[n];
          ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << a << " instead of " << b;
          ASSERT_EQ(std::isnan(a), nan);
        }
      }
    }
  }
}

// Some clients give their requests up at some time: what stops in the middle leaves the session's
// programs as they were for those who go on.
void RunAndCancel(const char* text, const Shape& shape, const std::vector<int64_t>& sizes) {
  const auto plain = SessionOf(text, 1, false), session = SessionOf(text, 2);
  std::vector<Tensor> inputs, want;
  for (const int64_t rows : sizes) {
    inputs.push_back(Ripples(shape, rows));
    const auto got = plain->Run({{"x", inputs.back()}}, {"y"}, {});
    ASSERT_TRUE(got.ok()) << got.status();
    want.push_back((*got)[0]);
  }
  const auto run = [&](size_t at, const RunOptions& options) {
    const auto got = session->Run({{"x", inputs[at]}}, {"y"}, {}, options);
    if (options.cancellation != nullptr && absl::IsCancelled(got.status())) return;
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ((*got)[0].shape(), want[at].shape());
    for (int64_t n = 0; n < want[at].num_elements(); ++n) {
      ASSERT_NEAR((*got)[0].data<float>()[n], want[at].data<float>()[n], 1e-4);
    }
  };
  std::vector<std::thread> clients;
  for (size_t c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (size_t i = 0; i < 4 * sizes.size(); ++i) {
        const size_t at = (i * (c + 1) + c) % sizes.size();
        if (c % 2 == 0) {
          run(at, {});
          continue;
        }
        Cancellation cancellation;
        std::thread late([&] {
          absl::SleepFor(absl::Microseconds(20 * (i % 16) * (i % 16)));
          cancellation.Cancel();
        });
        run(at, {.cancellation = &cancellation});
        late.join();
      }
    });
  }
  for (std::thread& t : clients) t.join();
  for (size_t i = 0; i < sizes.size(); ++i) run(i, {});
}

TEST(ProgramThreads, CancelledMeanwhile) {
  RunAndCancel(kLarge, Shape({1, 12, 12, 32}), {1, 3, 8, 16});
  RunAndCancel(kLoop, Shape({1, 2, 8}), {1, 200, 2000, 30});
  RunAndCancel(kFlow, Shape({1, 8}), {1, 3, 40, 500});
}

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

// Shapes come and go beyond those that are kept, and programs go while they run.
TEST(ProgramThreads, ManyShapesAtOnce) {
  const auto plain = SessionOf(kSmall, 1, false), session = SessionOf(kSmall, 2);
  std::vector<std::thread> clients;
  std::vector<Tensor> inputs, want;
  for (int64_t rows = 0; rows < 90; ++rows) {
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
