// Graphs that tests run as programs, and sessions of them.
#ifndef SMELT_TESTS_PROGRAM_SESSIONS_H_
#define SMELT_TESTS_PROGRAM_SESSIONS_H_

#include <gtest/gtest.h>

#include <memory>

#include "smelt/graph/text.h"
#include "smelt/runtime/session.h"

namespace smelt {

// x: [?, 8], y and n: [?, 4].
inline constexpr char kSmall[] = R"(
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

// A loop that is a scan, whose product leaves it: its body is a program of its own.
// x: [?, 2, 8], y: the same.
inline constexpr char kLoop[] = R"(
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

inline std::unique_ptr<Session> SessionOf(const char* text, int threads, bool compile = true) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::make_unique<Session>(std::shared_ptr<const Graph>(*std::move(graph)),
                                   SessionOptions{.threads = threads, .compile = compile});
}

// So many rows, each row set its own numbers.
inline Tensor Ripples(Shape shape, int64_t rows) {
  shape.Set(0, rows);
  Tensor t = *Tensor::Make(Dtype::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>((i + rows) * 7919 % 1009) / 500 - 1;
  }
  return t;
}

}  // namespace smelt

#endif  // SMELT_TESTS_PROGRAM_SESSIONS_H_
