// Functions of each number, and of two with broadcasting.
#include "smelt/optimize/gradients/rows.h"

namespace smelt::gradients {
namespace {

// gx and gy have the shape of the result; dx and dy are summed where x and y were repeated.
constexpr Form kBroadcasting = {"x y dz", "dx dy", "sx = Shape(x)\nsy = Shape(y)\n",
                                R"(
rx = BroadcastGradientArgs(sx, sy)
sum_gx = Sum(gx, rx)
dx = Reshape(sum_gx, sx)
sum_gy = Sum(gy, rx:1)
dy = Reshape(sum_gy, sy)
)"};
constexpr Form kOfReal = {"x dy", "dx", "zero = ZerosLike(dy)\n"};
constexpr Form kSelect = {"c x y dz", "dc dx dy"};

// What multiplies a complex gradient is the conjugate.
StatusOr<std::string> Product(const Node& n) {
  if (IsComplex(n.Type("T"))) {
    return std::string(R"(
cy = Conj(y, ^dz)
gx = Mul(dz, cy)
cx = Conj(x, ^dz)
gy = Mul(cx, dz)
)");
  }
  return std::string("gx = Mul(dz, y)\ngy = Mul(x, dz)\n");
}

// A logarithm of what has none counts as zero.
StatusOr<std::string> Power(const Node& n) {
  const bool complex = IsComplex(n.Type("T"));
  return absl::StrCat(complex ? R"(
a = Conj(x)
b = Conj(y)
)"
                              : R"(
a = Identity(x)
b = Identity(y)
)",
                      R"(
z = Pow(a, b)
const_zero = Const {value=float[]{0}}
const_one = Const {value=float[]{1}}
zero = Cast(const_zero) {DstT=$T}
one = Cast(const_one) {DstT=$T}
t0 = Sub(b, one, ^dz)
t1 = Pow(a, t0)
t2 = Mul(dz, b)
gx = Mul(t1, t2)
unsafe_log = Log(a, ^dz)
zeros = ZerosLike(a)
has_log = )",
                      complex ? "NotEqual" : "Greater", R"((a, zero)
safe_log = Select(has_log, unsafe_log, zeros)
t4 = Mul(dz, z)
gy = Mul(safe_log, t4)
)");
}

constexpr absl::string_view kReciprocal = R"(
y = Reciprocal(x)
y2 = Square(y, ^dy)
y2_neg = Neg(y2)
dx = Mul(dy, y2_neg)
)";
constexpr absl::string_view kExp = "y = Exp(x)\ndx = Mul(dy, y)\n";
constexpr absl::string_view kSum = "gx = Identity(dz)\ngy = Identity(dz)\n";

constexpr Row kAllMathRows[] = {
    {"Abs", &kUnary, "sign = Sign(x, ^dy)\ndx = Mul(dy, sign)\n"},
    {"Neg", &kUnary, "dx = Neg(dy)\n"},
    {"Inv", &kUnary, kReciprocal},
    {"Reciprocal", &kUnary, kReciprocal},
    {"Square", &kUnary, R"(
c = Const {value=int64[]{2}}
two = Cast(c) {DstT=$T}
x2 = Mul(x, two, ^dy)
dx = Mul(dy, x2)
)"},
    {"Sqrt", &kUnary, R"(
y = Sqrt(x)
y_inv = Reciprocal(y, ^dy)
const = Const {value=float[]{0.5}}
half = Cast(const) {DstT=$T}
a = Mul(half, y_inv)
dx = Mul(dy, a)
)"},
    {"Rsqrt", &kUnary, R"(
x_inv = Reciprocal(x, ^dy)
y = Rsqrt(x)
const = Const {value=float[]{-0.5}}
neghalf = Cast(const) {DstT=$T}
a = Mul(neghalf, x_inv)
b = Mul(a, y)
dx = Mul(dy, b)
)"},
    {"Exp", &kUnary, kExp},
    {"Expm1", &kUnary, kExp},
    {"Log", &kUnary, "x_inv = Reciprocal(x, ^dy)\ndx = Mul(dy, x_inv)\n"},
    {"Log1p", &kUnary, R"(
const = Const {value=float[]{1}}
one = Cast(const) {DstT=$T}
a = Add(one, x)
dx = Div(dy, a)
)"},
    {"Sinh", &kUnary, "cosh = Cosh(x, ^dy)\ndx = Mul(dy, cosh)\n"},
    {"Cosh", &kUnary, "sinh = Sinh(x, ^dy)\ndx = Mul(dy, sinh)\n"},
    {"Tanh", &kUnary, R"(
y = Tanh(x)
y2 = Square(y, ^dy)
const = Const {value=float[]{1}}
one = Cast(const) {DstT=$T}
a = Sub(one, y2)
dx = Mul(dy, a)
)"},
    // TensorFlow multiplies by cosh(y) and sinh(y), the reciprocals of these derivatives.
    {"Asinh", &kUnary, "y = Asinh(x)\ncosh = Cosh(y)\ndx = RealDiv(dy, cosh)\n"},
    {"Acosh", &kUnary, "y = Acosh(x)\nsinh = Sinh(y)\ndx = RealDiv(dy, sinh)\n"},
    {"Atanh", &kUnary, R"(
x2 = Square(x)
const = Const {value=float[]{1}}
one = Cast(const) {DstT=$T}
a = Sub(one, x2)
inv = Reciprocal(a)
dx = Mul(dy, inv)
)"},
    {"Sigmoid", &kUnary, R"(
y = Sigmoid(x)
const = Const {value=float[]{1}}
one = Cast(const) {DstT=$T}
a = Sub(one, y, ^dy)
b = Mul(y, a)
dx = Mul(dy, b)
)"},
    {"Sign", &kUnary, R"(
s = Shape(x)
zero = Const {value=float[]{0}}
val = Cast(zero) {DstT=$T}
dx = Fill(s, val)
)"},
    {"Sin", &kUnary, "cos = Cos(x, ^dy)\ndx = Mul(dy, cos)\n"},
    {"Cos", &kUnary, "sin = Sin(x, ^dy)\nneg = Neg(sin)\ndx = Mul(dy, neg)\n"},
    {"Acos", &kUnary, R"(
x2 = Square(x)
const = Const {value=float[]{1}}
one = Cast(const) {DstT=$T}
a = Sub(one, x2)
b = Sqrt(a)
inv = Reciprocal(b)
neg = Neg(inv)
dx = Mul(dy, neg)
)"},
    {"Asin", &kUnary, R"(
x2 = Square(x)
const = Const {value=float[]{1}}
one = Cast(const) {DstT=$T}
a = Sub(one, x2)
b = Sqrt(a)
inv = Reciprocal(b)
dx = Mul(dy, inv)
)"},
    {"Atan", &kUnary, R"(
x2 = Square(x)
const = Const {value=float[]{1}}
one = Cast(const) {DstT=$T}
a = Add(one, x2)
inv = Reciprocal(a)
dx = Mul(dy, inv)
)"},
    {"Tan", &kUnary, R"(
cosx = Cos(x)
secx = Reciprocal(cosx)
secx2 = Square(secx)
dx = Mul(dy, secx2)
)"},
    {"Real", &kOfReal, "dx = Complex(dy, zero) {Tout=$T}\n"},
    {"Imag", &kOfReal, "dx = Complex(zero, dy) {Tout=$T}\n"},
    {"Angle", &kOfReal, R"(
re = Real(x) {Tout=$Tout}
im = Imag(x) {Tout=$Tout}
z = Complex(im, re) {Tout=$T}
z_inv = Reciprocal(z)
neg = Neg(z_inv)
dz = Complex(dy, zero) {Tout=$T}
dx = Mul(neg, dz)
)"},
    {"Conj", &kUnary, "dx = Conj(dy)\n"},
    {"Cast", &kUnary, "dx = Cast(dy) {DstT=$SrcT}\n"},

    {"Add", &kBroadcasting, kSum},
    {"AddV2", &kBroadcasting, kSum},
    {"Sub", &kBroadcasting, "gx = Identity(dz)\ngy = Neg(dz)\n"},
    {"Mul", &kBroadcasting, "", Product},
    {"MulNoNan", &kBroadcasting, "gx = MulNoNan(dz, y)\ngy = MulNoNan(dz, x)\n"},
    {"Div", &kBroadcasting, R"(
gx = Div(dz, y)
nx = Neg(x, ^dz)
y2 = Square(y, ^dz)
nx_y2 = Div(nx, y2)
gy = Mul(dz, nx_y2)
)"},
    {"RealDiv", &kBroadcasting, R"(
gx = RealDiv(dz, y)
nx = Neg(x, ^dz)
y2 = Square(y, ^dz)
nx_y2 = RealDiv(nx, y2)
gy = Mul(dz, nx_y2)
)"},
    {"DivNoNan", &kBroadcasting, R"(
gx = DivNoNan(dz, y)
nx = Neg(x, ^dz)
y2 = Square(y, ^dz)
nx_y2 = DivNoNan(nx, y2)
gy = Mul(dz, nx_y2)
)"},
    {"Pow", &kBroadcasting, "", Power},
    {"Xlogy", &kBroadcasting, R"(
zeros = ZerosLike(x)
is_x_zero = NotEqual(x, zeros)
is_zero_cast = Cast(is_x_zero) {DstT=$T}
safe_logy = Xlogy(is_zero_cast, y)
xlogygrad = Xdivy(x, y)
gx = Mul(safe_logy, dz)
gy = Mul(xlogygrad, dz)
)"},
    {"Xlog1py", &kBroadcasting, R"(
const = Const {value=float[]{1}}
one = Cast(const) {DstT=$T}
zeros = ZerosLike(x)
yp1 = Add(y, one)
is_x_zero = NotEqual(x, zeros)
is_zero_cast = Cast(is_x_zero) {DstT=$T}
safe_log1py = Xlog1py(is_zero_cast, y)
xlog1pygrad = Xdivy(x, yp1)
gx = Mul(safe_log1py, dz)
gy = Mul(xlog1pygrad, dz)
)"},
    {"Xdivy", &kBroadcasting, R"(
zeros = ZerosLike(x)
is_x_zero = NotEqual(x, zeros)
is_zero_cast = Cast(is_x_zero) {DstT=$T}
safe_divy = Xdivy(is_zero_cast, y)
y2 = Square(y)
negy2 = Neg(y2)
xdivygrad = Xdivy(x, negy2)
gx = Mul(safe_divy, dz)
gy = Mul(xdivygrad, dz)
)"},
    {"SquaredDifference", &kBroadcasting, R"(
c = Const {value=int64[]{2}}
two = Cast(c) {DstT=$T}
x_sub_y = Sub(x, y)
two_x_sub_y = Mul(two, x_sub_y)
gx = Mul(two_x_sub_y, dz)
gy = Neg(gx)
)"},
    {"Maximum", &kBroadcasting, R"(
c = GreaterEqual(x, y, ^dz)
mask = Cast(c) {DstT=$T}
gx = Mul(dz, mask)
gy = Sub(dz, gx)
)"},
    {"Minimum", &kBroadcasting, R"(
c = LessEqual(x, y, ^dz)
mask = Cast(c) {DstT=$T}
gx = Mul(dz, mask)
gy = Sub(dz, gx)
)"},
    {"Complex", &kBroadcasting, "gx = Real(dz) {Tout=$T}\ngy = Imag(dz) {Tout=$T}\n"},
    {"Select", &kSelect, R"(
dc = ZerosLike(c, ^dz)
zeros = ZerosLike(x, ^dz)
dx = Select(c, dz, zeros)
dy = Select(c, zeros, dz)
)"},
};

// Rows that are right for complex numbers: the others lack a conjugate.
constexpr OpSet kComplex = {"Add", "AddV2", "Angle", "Cast", "Complex", "Conj", "Imag",
                            "Mul", "Neg",   "Pow",   "Real", "Select",  "Sub"};

}  // namespace

Status CheckNumbers(const Node& n) {
  if (!IsComplex(n.Type("T")) || n.Is(kComplex)) return OkStatus();
  for (const Row& row : kAllMathRows) {
    if (row.op == n.op()) {
      return Unimplemented(n.op(), " gradient for complex is not supported yet.");
    }
  }
  return OkStatus();
}

const std::span<const Row> kMathRows = kAllMathRows;

}  // namespace smelt::gradients
