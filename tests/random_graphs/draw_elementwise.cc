// Elementwise ops with every form of broadcast, casts, choices, reductions.
#include "absl/strings/str_cat.h"
#include "tests/random_graphs/drawer.h"

namespace smelt {
namespace {

std::string TypeAttr(Dtype t) { return absl::StrCat("T=", DtypeName(t)); }

void DrawUnary(Drawer& d) {
  const auto x = d.Pick([](const Tensor&) { return true; });
  if (!x) return;
  const Dtype t = d.TypeOf(*x);
  if (Drawer::IsFloating(t)) {
    const std::string op =
        d.Word({"Neg",       "Abs",       "Square",   "Sqrt",        "Rsqrt", "Exp",   "Expm1",
                "Log",       "Log1p",     "Tanh",     "Sigmoid",     "Relu",  "Relu6", "Elu",
                "Selu",      "LeakyRelu", "Softplus", "Softsign",    "Erf",   "Erfc",  "Sin",
                "Cos",       "Floor",     "Ceil",     "Round",       "Rint",  "Sign",  "Reciprocal",
                "Inv",       "IsNan",     "IsInf",    "IsFinite",    "Sinh",  "Cosh",  "Tan",
                "Asin",      "Atan",      "Acos",     "Asinh",       "Acosh", "Atanh", "Identity",
                "ZerosLike", "OnesLike",  "Lgamma",   "StopGradient"});
    // Behind a product another kernel may compute it.
    const bool known = op == "Tanh" || op == "Sigmoid" || op == "Elu" || op == "Erf" || op == "Exp";
    d.Add(op, {*x}, TypeAttr(t), known && d.IsRounded(*x));
  } else if (Drawer::IsInteger(t)) {
    d.Add(d.Word({"Neg", "Abs", "Square", "Sign", "Invert", "Identity", "ZerosLike"}), {*x},
          TypeAttr(t));
  } else {
    d.Add("LogicalNot", {*x}, "");
  }
}

void DrawBinary(Drawer& d) {
  const auto x = d.Pick([](const Tensor&) { return true; });
  if (!x) return;
  const Dtype t = d.TypeOf(*x);
  DrawnPort a = *x, b = d.OneIn(12) ? *x : d.Partner(*x);
  if (d.OneIn(2)) std::swap(a, b);
  if (Drawer::IsFloating(t)) {
    d.Add(d.Word({"AddV2",
                  "AddV2",
                  "Add",
                  "Sub",
                  "Sub",
                  "Mul",
                  "Mul",
                  "RealDiv",
                  "Maximum",
                  "Minimum",
                  "SquaredDifference",
                  "Pow",
                  "FloorDiv",
                  "FloorMod",
                  "DivNoNan",
                  "MulNoNan",
                  "Xdivy",
                  "Xlogy",
                  "Atan2",
                  "Div",
                  "Mod"}),
          {a, b}, TypeAttr(t));
  } else if (Drawer::IsInteger(t)) {
    d.Add(d.Word({"AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "FloorDiv",
                  "FloorMod", "TruncateDiv", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift",
                  "RightShift"}),
          {a, b}, TypeAttr(t));
  } else {
    d.Add(d.Word({"LogicalAnd", "LogicalOr"}), {a, b}, "");
  }
}

void DrawComparison(Drawer& d) {
  const auto x = d.Pick([](const Tensor&) { return true; });
  if (!x) return;
  const Dtype t = d.TypeOf(*x);
  const bool ordered = t != Dtype::kBool;
  d.Add(ordered ? d.Word({"Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"})
                : d.Word({"Equal", "NotEqual"}),
        {*x, d.Partner(*x)}, TypeAttr(t));
}

void DrawSelect(Drawer& d) {
  const auto x = d.Pick([](const Tensor&) { return true; });
  if (!x) return;
  const Dtype t = d.TypeOf(*x);
  const auto dims = d.ShapeOf(*x).dims();
  if (d.OneIn(3)) {
    const bool row = d.OneIn(2) && !dims.empty();
    const DrawnPort c = d.Like(Dtype::kBool, row ? dims.first(1) : dims);
    d.Add("Select", {c, *x, d.Like(t, dims)}, TypeAttr(t));
    return;
  }
  // The condition may be smaller or larger.
  Dims of(dims.begin(), dims.end());
  for (int64_t& n : of) {
    if (d.OneIn(4)) n = 1;
  }
  while (!of.empty() && d.OneIn(5)) of.erase(of.begin());
  DrawnPort a = *x, b = d.Partner(*x);
  if (d.OneIn(2)) std::swap(a, b);
  d.Add("SelectV2", {d.Like(Dtype::kBool, of), a, b}, TypeAttr(t));
}

void DrawClip(Drawer& d) {
  const auto x = d.PickFloating();
  if (!x) return;
  const Dtype t = d.TypeOf(*x);
  d.Add("ClipByValue", {*x, d.Fresh(t, {}, true), d.Fresh(t, {}, true)}, TypeAttr(t));
}

void DrawAddN(Drawer& d) {
  const auto x = d.Pick([](const Tensor& v) { return v.dtype() != Dtype::kBool; });
  if (!x) return;
  std::vector<DrawnPort> all = {*x};
  const size_t count = 1 + d.Below(4);
  while (all.size() < count) all.push_back(d.Like(d.TypeOf(*x), d.ShapeOf(*x).dims()));
  d.Add("AddN", all, absl::StrCat("N=", all.size(), ", ", TypeAttr(d.TypeOf(*x))));
}

void DrawBiasAdd(Drawer& d) {
  const auto x = d.Pick([](const Tensor& v) { return v.dtype() != Dtype::kBool && v.rank() >= 2; });
  if (!x) return;
  const bool first = d.OneIn(4);
  const int64_t size[] = {first ? d.ShapeOf(*x)[1] : d.ShapeOf(*x).back()};
  d.Add("BiasAdd", {*x, d.Like(d.TypeOf(*x), size)},
        absl::StrCat(TypeAttr(d.TypeOf(*x)), ", data_format=\"", first ? "NCHW" : "NHWC", "\""));
}

void DrawCast(Drawer& d) {
  const auto x = d.Pick([](const Tensor&) { return true; });
  if (!x) return;
  const Dtype to = d.Of({Dtype::kFloat, Dtype::kFloat, Dtype::kDouble, Dtype::kInt32, Dtype::kInt64,
                         Dtype::kBool, Dtype::kHalf, Dtype::kBfloat16});
  // What no integer holds becomes any.
  if (Drawer::IsInteger(to) && (d.HasNan(*x) || d.IsHuge(*x))) return;
  d.Add("Cast", {*x},
        absl::StrCat("SrcT=", DtypeName(d.TypeOf(*x)), ", DstT=", DtypeName(to),
                     ", Truncate=", d.OneIn(8) ? "true" : "false"));
}

void DrawReduction(Drawer& d) {
  const auto x = d.Pick([](const Tensor&) { return true; });
  if (!x) return;
  const int rank = d.ShapeOf(*x).rank();
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) {
    if (d.OneIn(2)) axes.push_back(d.OneIn(3) ? i - rank : i);
  }
  if (d.OneIn(3) && rank > 0) axes = {-1};
  const Dtype t = d.TypeOf(*x);
  const char* keep = d.OneIn(2) ? "true" : "false";
  if (t == Dtype::kBool) {
    d.Add(d.Word({"All", "Any"}), {*x, d.Ints(axes)}, absl::StrCat("keep_dims=", keep));
    return;
  }
  const std::string op =
      d.Word({"Sum", "Sum", "Mean", "Mean", "Max", "Min", "Prod", "EuclideanNorm"});
  d.Add(op, {*x, d.Ints(axes)}, absl::StrCat(TypeAttr(t), ", keep_dims=", keep),
        op == "Mean" && t == Dtype::kFloat);
}

void DrawAlongAxis(Drawer& d) {
  const auto x = d.Pick([](const Tensor& v) { return v.dtype() != Dtype::kBool && v.rank() >= 1; });
  if (!x) return;
  const int64_t rank = d.ShapeOf(*x).rank();
  const std::string t = TypeAttr(d.TypeOf(*x));
  if (d.OneIn(2)) {
    d.Add(d.Word({"ArgMax", "ArgMin"}), {*x, d.Int(d.Between(-rank, rank - 1))},
          absl::StrCat(t, ", output_type=", d.Word({"int32", "int64"})));
    return;
  }
  d.Add(d.Word({"Cumsum", "Cumprod"}), {*x, d.Int(d.Between(-rank, rank - 1))},
        absl::StrCat(t, ", exclusive=", d.OneIn(3) ? "true" : "false",
                     ", reverse=", d.OneIn(3) ? "true" : "false"));
}

void DrawFakeQuant(Drawer& d) {
  const auto x = d.Pick([](const Tensor& v) { return v.dtype() == Dtype::kFloat; });
  if (!x) return;
  d.Add("FakeQuantWithMinMaxArgs", {*x}, "min=-3.0f, max=2.5f, num_bits=8, narrow_range=false");
}

// Many elementwise steps in a row.
void DrawChain(Drawer& d) {
  const size_t count = 2 + d.Below(7);
  for (size_t i = 0; i < count && !d.failed(); ++i)
    d.OneIn(3) ? DrawUnary(d) : d.OneIn(6) ? DrawSelect(d) : DrawBinary(d);
}

constexpr Production kRows[] = {{6, DrawUnary},     {9, DrawBinary},    {2, DrawComparison},
                                {3, DrawSelect},    {1, DrawClip},      {1, DrawAddN},
                                {1, DrawBiasAdd},   {2, DrawCast},      {4, DrawReduction},
                                {1, DrawAlongAxis}, {1, DrawFakeQuant}, {4, DrawChain}};

}  // namespace

std::span<const Production> ElementwiseProductions() { return kRows; }

}  // namespace smelt
