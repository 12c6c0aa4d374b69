// Reductions and products of matrices.
#include "smelt/optimize/gradients/rows.h"

namespace smelt::gradients {
namespace {

constexpr Form kReduction = {"x i dy", "dx di"};
constexpr Form kProduct = {"x y dz", "dx dy"};

// How often each dimension of x is taken, and the shape of the result with those of size one. Axes
// may count from the end, where TensorFlow wants them not to, and be int64.
std::string Scaling(const Node& n, absl::string_view then) {
  const bool wide = n.Type("Tidx") == Dtype::kInt64;
  return absl::StrCat(wide ? "narrow = Cast(i) {DstT=int32}\n" : "", R"(
x_shape = Shape(x)
x_rank = Rank(x)
axes = FloorMod()",
                      wide ? "narrow" : "i", R"(, x_rank)
i_shape = Shape(i)
zero = Const {value=int32[]{0}}
one = Const {value=int32[]{1}}
stitch_val1 = Fill(i_shape, one)
stitch_idx0 = Range(zero, x_rank, one)
y_shape = DynamicStitch(stitch_idx0, axes, x_shape, stitch_val1)
di = ZerosLike(i)
)",
                      then);
}

StatusOr<std::string> Sum(const Node& n) {
  return Scaling(n, R"(
dy_reshaped = Reshape(dy, y_shape)
dx = BroadcastTo(dy_reshaped, x_shape)
)");
}

StatusOr<std::string> Mean(const Node& n) {
  return Scaling(n, R"(
x_size = Size(x)
y_size = Prod(y_shape, zero)
one_at_least = Maximum(y_size, one)
factor = FloorDiv(x_size, one_at_least)
factor_T = Cast(factor) {DstT=$T}
dy_scaled = Div(dy, factor_T)
dy_reshaped = Reshape(dy_scaled, y_shape)
dx = BroadcastTo(dy_reshaped, x_shape)
)");
}

// Those that are equally large share the gradient.
std::string Extremum(absl::string_view op) {
  return absl::StrCat("y = ", op, R"((x, i) {keep_dims=true}
mask = Equal(x, y)
mask_cast = Cast(mask) {DstT=$T}
mask_sum = Sum(mask_cast, i) {keep_dims=true}
sy = Shape(y)
dy_reshaped = Reshape(dy, sy)
norm_dy = Div(dy_reshaped, mask_sum)
dx = Mul(mask_cast, norm_dy)
di = ZerosLike(i)
)");
}

// Of z = op(x)op(y), where a letter with a bar is a matrix that is transposed.
StatusOr<std::string> Matrices(const Node& n, absl::string_view of_x, absl::string_view of_y,
                               absl::string_view dx, absl::string_view dy) {
  if (IsComplex(n.Type("T"))) {
    return Unimplemented("MatMul gradient for complex is not supported yet.");
  }
  struct Side {
    absl::string_view a;
    bool turn_a;
    absl::string_view b;
    bool turn_b;
  };
  const bool ta = n.Bool(of_x), tb = n.Bool(of_y);
  const Side x = ta ? Side{"y", tb, "dz", true} : Side{"dz", false, "y", !tb};
  const Side y = tb ? Side{"dz", true, "x", ta} : Side{"x", !ta, "dz", false};
  std::string text;
  for (const auto& [name, side] : {std::pair(dx, x), std::pair(dy, y)}) {
    absl::StrAppend(&text, name, " = ", n.op(), "(", side.a, ", ", side.b, ") {", of_x, "=",
                    side.turn_a ? "true" : "false", ", ", of_y, "=", side.turn_b ? "true" : "false",
                    "}\n");
  }
  return text;
}

StatusOr<std::string> MatMul(const Node& n) {
  return Matrices(n, "transpose_a", "transpose_b", "dx", "dy");
}
StatusOr<std::string> BatchMatMul(const Node& n) {
  return Matrices(n, "adj_x", "adj_y", "dx", "dy");
}
// The batches of x and y may have been repeated.
StatusOr<std::string> BatchMatMulV2(const Node& n) {
  ASSIGN_OR_RETURN(const std::string products, Matrices(n, "adj_x", "adj_y", "gx", "gy"));
  return absl::StrCat(products, R"(
zero = Const {value=int32[1]{0}}
one = Const {value=int32[1]{1}}
minustwo = Const {value=int32[1]{-2}}
sx = Shape(x)
sy = Shape(y)
batch_sx = StridedSlice(sx, zero, minustwo, one)
batch_sy = StridedSlice(sy, zero, minustwo, one)
rx = BroadcastGradientArgs(batch_sx, batch_sy)
sum_gx = Sum(gx, rx)
sum_gy = Sum(gy, rx:1)
dx = Reshape(sum_gx, sx)
dy = Reshape(sum_gy, sy)
)");
}

constexpr Row kAllReductionRows[] = {
    {"Sum", &kReduction, "", Sum},
    {"Mean", &kReduction, "", Mean},
    {"Max", &kReduction, "", [](const Node&) -> StatusOr<std::string> { return Extremum("Max"); }},
    {"Min", &kReduction, "", [](const Node&) -> StatusOr<std::string> { return Extremum("Min"); }},
    {"MatMul", &kProduct, "", MatMul},
    {"BatchMatMul", &kProduct, "", BatchMatMul},
    {"BatchMatMulV2", &kProduct, "", BatchMatMulV2},
};

}  // namespace

const std::span<const Row> kReductionRows = kAllReductionRows;

}  // namespace smelt::gradients
