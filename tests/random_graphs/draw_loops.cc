// While loops over lists, as tf.scan and recurrent layers leave them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "smelt/graph/text.h"
#include "tests/random_graphs/drawer.h"

namespace smelt {
namespace {

std::string Weights(Drawer& d, int64_t rows, int64_t columns) {
  Tensor w = *Tensor::Make(Dtype::kFloat, columns < 0 ? Shape({rows}) : Shape({rows, columns}));
  for (float& v : w.flat<float>()) v = static_cast<float>(d.Between(-8, 8)) / 8;
  return absl::StrCat("Const {dtype=float, value=", PrintTensor(*TensorValue::Of(w)), "}\n");
}

// A loop over dimension 0 of [steps, rows, depth], with one or two states [rows, units].
void DrawScan(Drawer& d) {
  const auto x = d.Pick([](const Tensor& t) {
    return t.dtype() == Dtype::kFloat && t.rank() == 3 && t.num_elements() > 0 && t.dim(0) < 12;
  });
  if (!x || d.IsHuge(*x)) return;
  const int64_t steps = d.ShapeOf(*x)[0], rows = d.ShapeOf(*x)[1], depth = d.ShapeOf(*x)[2];
  const int64_t units = d.Between(1, 17);
  const int number = d.FreshNumber();
  const bool two = d.OneIn(2);
  const std::string states = two ? ", h: float, c: float" : ", h: float";
  const std::string given = two ? ", h1: float, c1: float" : ", h1: float";
  std::string text =
      absl::StrCat("func more", number, "(i: int32, m: int32, t: int32, out: variant", states,
                   ", n: int32, xs: variant) -> (go: bool) {\n",
                   "a = Less(i, m) {T=int32}\nb = Less(t, n) {T=int32}\ngo = LogicalAnd(a, "
                   "b)\nreturn go=go\n}\n");
  absl::StrAppend(
      &text, "func cell", number, "(i: int32, m: int32, t: int32, out: variant", states,
      ", n: int32, xs: variant) -> (i1: int32, m1: int32, t1: int32, out1: variant", given,
      ", n1: int32, xs1: variant) {\n",
      "one = Const {dtype=int32, value=int32[]{1}}\nof = Const {dtype=int32, value=int32[2]{-1, ",
      depth, "}}\n", "x = TensorListGetItem(xs, t, of) {element_dtype=float}\n");
  const int gates = two ? 4 : 1 + static_cast<int>(d.Below(3));
  absl::StrAppend(&text, "w = ", Weights(d, depth, units * gates),
                  "u = ", Weights(d, units, units * gates),
                  "bias = ", Weights(d, units * gates, -1));
  absl::StrAppend(&text, "xw = MatMul(x, w) {T=float}\nhu = MatMul(h, u) {T=float}\n");
  switch (d.Below(3)) {
    case 0:
      text += "sum = AddV2(xw, hu) {T=float}\nz = BiasAdd(sum, bias) {T=float}\n";
      break;
    case 1:
      text += "xb = BiasAdd(xw, bias) {T=float}\nz = AddV2(hu, xb) {T=float}\n";
      break;
    default:
      text += "hb = AddV2(hu, bias) {T=float}\nz = AddV2(xw, hb) {T=float}\n";
  }
  absl::StrAppend(
      &text,
      "axis = Const {dtype=int32, value=int32[]{1}}\ngates = Split(axis, z) {T=float, num_split=",
      gates, "}\n");
  const auto f = [&] {
    return std::string(d.Word({"Sigmoid", "Tanh", "Relu", "Softplus", "Elu"}));
  };
  if (two) {
    absl::StrAppend(
        &text, "in = ", f(),
        "(gates) {T=float}\nforget = Sigmoid(gates:1) {T=float}\nnew = Tanh(gates:2) "
        "{T=float}\ngive = ",
        f(), "(gates:3) {T=float}\n",
        "kept = Mul(forget, c) {T=float}\nadded = Mul(in, new) {T=float}\nc2 = AddV2(kept, added) "
        "{T=float}\nshown = Tanh(c2) {T=float}\nh2 = Mul(give, shown) {T=float}\n");
  } else if (gates == 1) {
    absl::StrAppend(&text, "h2 = ", d.Word({"Sigmoid", "Tanh"}), "(gates) {T=float}\n");
  } else {
    absl::StrAppend(&text,
                    "g = Sigmoid(gates) {T=float}\nr = Tanh(gates:1) {T=float}\ngh = Mul(g, h) "
                    "{T=float}\nh3 = Sub(r, gh) {T=float}\nh2 = ",
                    d.Word({"Tanh", "Sigmoid", "Identity"}), "(h3) {T=float}\n");
  }
  // What is written may be another value than the state.
  const std::string written = d.OneIn(3) ? "z" : "h2";
  const int64_t width = written == "z" ? units * gates : units;
  const bool backwards = d.OneIn(4);
  if (backwards) text += "last = Sub(n, one) {T=int32}\nat = Sub(last, t) {T=int32}\n";
  absl::StrAppend(&text, "out2 = TensorListSetItem(out, ", backwards ? "at" : "t", ", ", written,
                  ") {element_dtype=float}\n",
                  "i2 = AddV2(i, one) {T=int32}\nt2 = AddV2(t, one) {T=int32}\nreturn i1=i2 m1=m "
                  "t1=t2 out1=out2 h1=h2",
                  two ? " c1=c2" : "", " n1=n xs1=xs\n}\n");
  // A loop's lists are no values of the pool: one function holds them.
  absl::StrAppend(
      &text, "func scan", number, "(seq: float", states, ", steps: int32) -> (all: float", given,
      ") {\n", "zero = Const {dtype=int32, value=int32[]{0}}\n",
      "of = Const {dtype=int32, value=int32[2]{-1, ", depth,
      "}}\nofh = Const {dtype=int32, value=int32[2]{-1, ", width, "}}\n",
      "xs = TensorListFromTensor(seq, of) {element_dtype=float, shape_type=int32}\n",
      "list = TensorListReserve(ofh, steps) {element_dtype=float, shape_type=int32}\n",
      "loop = ", d.Word({"StatelessWhile", "While"}), "(zero, steps, zero, list, h",
      two ? ", c" : "", ", steps, xs) {T=list(int32, int32, int32, variant, ", two ? "float, " : "",
      "float, int32, variant), cond=@more", number, ", body=@cell", number, "}\n",
      "stack = TensorListStack(loop:3, ofh) {element_dtype=float, num_elements=-1}\n",
      "return all=stack h1=loop:4", two ? " c1=loop:5" : "", "\n}\n");
  d.AddFunction(text);
  const int64_t state[] = {rows, units};
  std::vector<DrawnPort> args = {*x, d.Like(Dtype::kFloat, state)};
  if (two) args.push_back(d.Like(Dtype::kFloat, state));
  for (const DrawnPort& p : args) {
    if (d.IsHuge(p)) return;
  }
  DrawnPort count = d.Int(d.OneIn(8) ? d.Between(0, steps) : steps);
  if (d.OneIn(2)) {
    const auto shape = d.Add("Shape", {*x}, "T=float, out_type=int32", false, false);
    if (!shape) return;
    const int64_t at[] = {0}, behind[] = {1}, one[] = {1};
    const auto n = d.Add("StridedSlice", {*shape, d.Ints(at), d.Ints(behind), d.Ints(one)},
                         "T=int32, Index=int32, begin_mask=0, end_mask=0, ellipsis_mask=0, "
                         "new_axis_mask=0, shrink_axis_mask=1",
                         false, false);
    if (!n) return;
    count = *n;
  }
  args.push_back(count);
  const std::string floats = two ? "float, float, float" : "float, float";
  d.Add("PartitionedCall", args,
        absl::StrCat("Tin=list(", floats, ", int32), Tout=list(", floats, "), f=@scan", number),
        true);
}

constexpr Production kRows[] = {{4, DrawScan}};

}  // namespace

std::span<const Production> LoopProductions() { return kRows; }

}  // namespace smelt
