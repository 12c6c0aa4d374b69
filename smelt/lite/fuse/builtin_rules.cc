// Our own fusions that a pattern says (docs/lite_fusions.md has the form). Those that count sizes
// or change constants of other operators are functions: affine.cc, movement.cc and so on.
#include "smelt/lite/fuse/rules.h"

namespace smelt {
namespace {

constexpr absl::string_view kText = R"rules(
# ---- activations that are spelled out

let clamped(p) = relu6(p) | minimum(relu(p), 6) | minimum(maximum(p, 0), 6)
               | maximum(minimum(p, 6), 0);
let sixth = 0.16666667~1e-4;          # models spell it in a few roundings
let hard(x) = clamped(add(x, 3));
let unit(p) = relu_0_to_1(p) | minimum(maximum(p, 0), 1) | maximum(minimum(p, 1), 0)
            | minimum(relu(p), 1);

fusion FuseHardSwish "x * relu6(x + 3) / 6 -> hard_swish(x)" {
  mul(x, hard(x), sixth) -> hard_swish(x);
  div(mul(x, hard(x)), 6) -> hard_swish(x);
  mul(x, div(hard(x), 6)) -> hard_swish(x);
  mul(div(x, 6), hard(x)) -> hard_swish(x);
  mul(x, unit(add(mul(x, sixth) | div(x, 6), 0.5))) -> hard_swish(x);
  mul(x, hard(x), sixth, y) -> mul(hard_swish(x), y);
}

# Of a product that goes on, constants may have moved to another factor, or become one with it.
let cube(x) = pow(x, 3) | mul(x, x, x) | mul(x, square(x));
let gelu_sum(x) = add(x, mul(0.044715~1e-4, cube(x)) | mul(0.044715~1e-4, x, x, x)
                         | mul(0.044715~1e-4, x, square(x)));
let gelu_tanh(x) = tanh(mul(0.7978846~1e-4, gelu_sum(x))
                        | mul(0.7978846~1e-4, x, add(1, mul(0.044715~1e-4, x, x)
                                                        | mul(0.044715~1e-4, square(x)))));
let gelu_erf(x) = Erf(mul(x, 0.70710678) | div(x, 1.41421356));
let gelu_erfc(x) = Erfc(mul(x, -0.70710678) | mul(neg(x), 0.70710678) | neg(mul(x, 0.70710678))
                        | div(neg(x), 1.41421356) | div(x, -1.41421356) | neg(div(x, 1.41421356)));
let half(x, p) = mul(x, 0.5, p) | div(mul(x, p), 2) | mul(x, div(p, 2)) | mul(div(x, 2), p);
let gelu(x, p) = half(x, add(1, p)) | mul(x, add(0.5, mul(0.5, p)));

fusion FuseGeluApproximate "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) -> gelu(x)" {
  gelu(x, gelu_tanh(x)) -> gelu(x){approximate=true};
  mul(x, 0.5, add(1, gelu_tanh(x)), y) -> mul(gelu(x){approximate=true}, y);
  mul(x, a:const, add(1, gelu_tanh(x))) -> mul(gelu(x){approximate=true}, {a * 2});
}
fusion FuseGelu "x / 2 * (1 + erf(x / sqrt(2))) -> gelu(x)" {
  gelu(x, gelu_erf(x)) -> gelu(x){approximate=false};
  half(x, gelu_erfc(x)) -> gelu(x){approximate=false};
  mul(x, 0.5, add(1, gelu_erf(x)) | gelu_erfc(x), y) -> mul(gelu(x){approximate=false}, y);
  mul(x, a:const, add(1, gelu_erf(x)) | gelu_erfc(x)) -> mul(gelu(x){approximate=false}, {a * 2});
}
late fusion FuseGeluTwice "x * (1 + erf(x / sqrt(2))) -> 2 * gelu(x), and by tanh" {
  mul(x, add(1, gelu_tanh(x))) -> mul(gelu(x){approximate=true}, 2);
  mul(x, add(1, gelu_erf(x)) | gelu_erfc(x)) -> mul(gelu(x){approximate=false}, 2);
}

let below(x) = relu(neg(x));
fusion FuseLeakyRelu "max(x, a * x) -> leaky_relu(x)" {
  maximum(x, mul(x, a:number)) -> leaky_relu(x){alpha=a} where a <= 1;
  add(relu(x), mul(a:number, below(x))) -> leaky_relu(x){alpha=-a};
  sub(relu(x), mul(a:number, below(x))) -> leaky_relu(x){alpha=a};
  add(relu(x), mul(a:number, minimum(x, 0))) -> leaky_relu(x){alpha=a};
  select_v2(greater(x, 0) | greater_equal(x, 0), x, mul(x, a:number)) -> leaky_relu(x){alpha=a};
  select(greater(x, 0) | greater_equal(x, 0), x, mul(x, a:number)) -> leaky_relu(x){alpha=a};
}
fusion FusePRelu "relu(x) - a * relu(-x) -> prelu(x, a)" {
  add(relu(x), mul(a:const, below(x))) -> prelu(x, {-a}) where fits(a, x);
  sub(relu(x), mul(a:const, below(x))) -> prelu(x, a) where fits(a, x);
  add(relu(x), neg(mul(a:const, below(x)))) -> prelu(x, a) where fits(a, x);
  add(relu(x), mul(a:const, minimum(x, 0))) -> prelu(x, a) where fits(a, x);
}
let above(x) = greater(x, 0) | greater_equal(x, 0);
let below_zero(x) = select_v2(above(x), 0, x) | select(above(x), 0, x) | minimum(x, 0) | x;
let exp_less_one(p) = sub(exp(p), 1) | add(exp(p), -1);
let lesser_elu(x) = exp_less_one(minimum(x, 0)) | elu(minimum(x, 0));
fusion FuseElu "select(x > 0, x, exp(min(x, 0)) - 1) -> elu(x)" {
  select_v2(above(x), x, exp_less_one(below_zero(x)) | elu(minimum(x, 0))) -> elu(x);
  select(above(x), x, exp_less_one(below_zero(x)) | elu(minimum(x, 0))) -> elu(x);
  add(relu(x), lesser_elu(x)) -> elu(x);
}
# Below zero elu(x) is below zero, above it is x.
fusion FuseScaledElu "select(x > 0, elu(x), a * elu(x)) -> leaky_relu(elu(x))" {
  select_v2(above(x), e@elu(x), mul(e, a:number)) -> leaky_relu(e){alpha=a};
  select(above(x), e@elu(x), mul(e, a:number)) -> leaky_relu(e){alpha=a};
  add(relu(x), mul(a:number, lesser_elu(x))) -> leaky_relu(elu(x)){alpha=a};
}
late fusion FuseEluOfLesser "exp(min(x, 0)) - 1 -> elu(min(x, 0))" {
  exp_less_one(m@minimum(_, 0)) -> elu(m);
}
# The ranges that training with FakeQuant puts in between say less than the whole does.
let ranged(p) = dequantize(quantize(p));
fusion FuseHardSwishQuantized "hard_swish with quantize and dequantize in between -> hard_swish(x)" {
  mul(ranged(mul(x, ranged(hard(x)))), sixth) -> hard_swish(x);
  mul(ranged(mul(x, hard(x))), sixth) -> hard_swish(x);
  mul(mul(x, ranged(hard(x))), sixth) -> hard_swish(x);
}
fusion FuseLogistic "1 / (1 + exp(-x)) -> logistic(x)" {
  div(1, add(1, exp(neg(x)))) -> logistic(x);
}
fusion FuseClamp "min(max(x, 0), 6) -> relu6(x); and to [-1, 1], [0, 1]" {
  minimum(maximum(x, 0) | relu(x), 6) -> relu6(x);
  maximum(minimum(x, 6), 0) -> relu6(x);
  relu(minimum(x, 6)) -> relu6(x);
  minimum(maximum(x, -1), 1) -> relu_n1_to_1(x);
  maximum(minimum(x, 1), -1) -> relu_n1_to_1(x);
  minimum(maximum(x, 0) | relu(x), 1) -> relu_0_to_1(x);
  maximum(minimum(x, 1), 0) -> relu_0_to_1(x);
  relu(minimum(x, 1)) -> relu_0_to_1(x);
}

# ---- normalizations

let squares(x) = sum(square(x) | mul(x, x), axes:const){keep_dims=true};
# The kernel divides by no less than 1e-6, as TensorFlow's l2_normalize does.
let norm2(x) = maximum(squares(x), 1e-12~1e-3);
fusion FuseL2Normalization "x / sqrt(max(sum(x^2), 1e-12)) -> l2_normalization(x)" {
  mul(x, rsqrt(norm2(x))) -> l2_normalization(x)
    where last_axis(axes, x), rank(x) <= 4, is_float(x);
  div(x, sqrt(norm2(x))) -> l2_normalization(x)
    where last_axis(axes, x), rank(x) <= 4, is_float(x);
  div(x, maximum(sqrt(squares(x)), 1e-6~1e-3)) -> l2_normalization(x)
    where last_axis(axes, x), rank(x) <= 4, is_float(x);
}
# Rows of zeros are NaN without the guard. A sum as the guard differs below 1e-5.
let squares_of_all(x) = sum(square(x) | mul(x, x), _){keep_dims=false};
fusion FuseUnguardedL2Normalization "x / sqrt(sum(x^2)) -> l2_normalization(x), 0 where x is 0" {
  mul(x, rsqrt(add(squares(x), 1e-12~1e-3))) -> l2_normalization(x)
    where last_axis(axes, x), rank(x) <= 4, is_float(x);
  div(x, sqrt(add(squares(x), 1e-12~1e-3))) -> l2_normalization(x)
    where last_axis(axes, x), rank(x) <= 4, is_float(x);
  mul(x, rsqrt(squares_of_all(x))) -> l2_normalization(x) where rank(x) == 1, is_float(x);
  div(x, sqrt(squares_of_all(x))) -> l2_normalization(x) where rank(x) == 1, is_float(x);
  mul(x, rsqrt(squares(x))) -> l2_normalization(x)
    where last_axis(axes, x), rank(x) <= 4, is_float(x);
  div(x, sqrt(squares(x))) -> l2_normalization(x)
    where last_axis(axes, x), rank(x) <= 4, is_float(x);
}

# JAX guards the greatest of an empty row by the least float, or minus infinity.
let greatest_flat(x) = maximum(reduce_max(x, axes:const){keep_dims=false}, -3.4028235e38)
                     | maximum(reduce_max(x, axes:const){keep_dims=false}, -inf);
let greatest(x) = g@reduce_max(x, axes:const){keep_dims=true}
                | g@maximum(reduce_max(x, axes:const){keep_dims=true}, -3.4028235e38)
                | g@maximum(reduce_max(x, axes:const){keep_dims=true}, -inf)
                | g@expand_dims(greatest_flat(x), _) | g@reshape(greatest_flat(x), _);
let shifted(x) = sub(x, greatest(x));
fusion FuseSoftmax "exp(x - max(x)) / sum(exp(x - max(x))) -> softmax(x)" {
  div(e@exp(shifted(x)), sum(e, sums:const){keep_dims=true}) -> softmax(x){beta=1}
    where last_axis(axes, x), last_axis(sums, x), dim(g, -1) == 1, rank(g) == rank(x);
  softmax(shifted(x)){beta=?b} -> softmax(x){beta=b}
    where last_axis(axes, x), dim(g, -1) == 1, rank(g) == rank(x);
  log_softmax(shifted(x)) -> log_softmax(x)
    where last_axis(axes, x), dim(g, -1) == 1, rank(g) == rank(x);
  sub(d@shifted(x), log(sum(exp(d), sums:const){keep_dims=true})) -> log_softmax(x)
    where last_axis(axes, x), last_axis(sums, x), dim(g, -1) == 1, rank(g) == rank(x);
}
# Where exp overflows it is NaN, and softmax is not.
fusion FuseUnshiftedSoftmax "exp(x) / sum(exp(x)) -> softmax(x), which does not overflow" {
  div(e@exp(x), sum(e, sums:const){keep_dims=true}) -> softmax(x){beta=1} where last_axis(sums, x);
}

# The greatest of a row stays the greatest.
fusion RemoveSoftmaxBeforeArgMax "arg_max(softmax(x)) -> arg_max(x), and arg_min, log_softmax" {
  arg_max(softmax(x){beta=?b}, axis:const){output_type=?t} -> arg_max(x, axis){output_type=t}
    where last_axis(axis, x), b > 0;
  arg_min(softmax(x){beta=?b}, axis:const){output_type=?t} -> arg_min(x, axis){output_type=t}
    where last_axis(axis, x), b > 0;
  arg_max(log_softmax(x), axis:const){output_type=?t} -> arg_max(x, axis){output_type=t}
    where last_axis(axis, x);
  arg_min(log_softmax(x), axis:const){output_type=?t} -> arg_min(x, axis){output_type=t}
    where last_axis(axis, x);
}
fusion FuseLogicalNotIntoSelect "select(!c, x, y) -> select(c, y, x)" {
  select_v2(logical_not(c), x, y) -> select_v2(c, y, x);
  select(logical_not(c), x, y) -> select(c, y, x);
}
fusion RemoveSelectOfBools "select(c, true, false) -> c, select(c, false, true) -> !c" {
  select_v2(c, a:const, b:const) -> c where is_bool(a), a == 1, b == 0;
  select_v2(c, a:const, b:const) -> logical_not(c) where is_bool(a), a == 0, b == 1;
  select(c, a:const, b:const) -> c where is_bool(a), a == 1, b == 0;
  select(c, a:const, b:const) -> logical_not(c) where is_bool(a), a == 0, b == 1;
}
fusion RemoveLogical "x && true -> x, x && false -> false, x || true -> true, x || false -> x" {
  logical_and(x, c:const) -> x where c == 1;
  logical_and(_, c:const) -> c where c == 0;
  logical_or(x, c:const) -> x where c == 0;
  logical_or(_, c:const) -> c where c == 1;
}
fusion FuseComparedBool "cast(b) != 0 -> b, cast(b) == 0 -> !b of a bool, and other comparisons" {
  not_equal(cast(b), c:const) -> b where is_bool(b), c == 0;
  greater(cast(b), c:const) -> b where is_bool(b), c == 0;
  less(c:const, cast(b)) -> b where is_bool(b), c == 0;
  equal(cast(b), c:const) -> logical_not(b) where is_bool(b), c == 0;
  less_equal(cast(b), c:const) -> logical_not(b) where is_bool(b), c == 0;
  greater_equal(c:const, cast(b)) -> logical_not(b) where is_bool(b), c == 0;
  less(cast(b), c:const) -> zeros_like(b) where is_bool(b), c == 0;
  greater(c:const, cast(b)) -> zeros_like(b) where is_bool(b), c == 0;
  greater_equal(cast(b), c:const) -> logical_not(zeros_like(b)) where is_bool(b), c == 0;
  less_equal(c:const, cast(b)) -> logical_not(zeros_like(b)) where is_bool(b), c == 0;
}
fusion RemoveSelect "select(true, x, y) -> x, select(false, x, y) -> y" {
  select_v2(c:const, x, y) -> x where c == 1;
  select_v2(c:const, x, y) -> y where c == 0;
  select(c:const, x, y) -> x where c == 1;
  select(c:const, x, y) -> y where c == 0;
}

# ---- arithmetic

late fusion FusePow "x^2, x^0.5, x^-0.5 -> square, sqrt, rsqrt" {
  pow(x, 1) -> x;
  pow(x, 2) -> square(x);
  pow(x, 0.5) -> sqrt(x);
  pow(x, -0.5) -> rsqrt(x);
}
late fusion FuseCube "x * x^2 -> x^3" {
  mul(x, square(x)) -> pow(x, 3) where is_float(x);
}
late fusion RemoveNeutral "x * 1, x / 1, x + 0, x - 0 -> x" {
  mul(x, 1) -> x;
  div(x, 1) -> x;
  # Some imaginary parts are -0, which a sum makes 0 of.
  add(x, 0) -> x where is_imaginary(x) == 0;
  sub(x, 0) -> x;
}
fusion RemoveCumsum "cumsum(x) along a dimension of one -> x" {
  cumsum(x, axis:const){exclusive=false} -> x where dim(x, axis) == 1;
}
fusion RemoveZerosLike "x + zeros_like(y), x - zeros_like(y) -> x, zeros_like(y) - x -> -x" {
  add(x, zeros_like(_)) -> x;
  sub(x, zeros_like(_)) -> x;
  sub(zeros_like(_), x) -> neg(x);
}
fusion RemoveShape "shape(fill(n, x)), shape(broadcast_to(x, n)) -> n" {
  shape(fill(n, _)) -> n;
  shape(broadcast_to(_, n)) -> n;
}
fusion RemoveCast "cast(x) to the type that it has -> x" {
  cast(x) -> x;
}
late fusion RemoveReluOfSquares "relu((x - y)^2) -> (x - y)^2, which is not negative" {
  relu(squared_difference(x, y)) -> squared_difference(x, y);
}
late fusion FuseConstants "(x * a) * b -> x * (a * b) of constants, and sums" {
  mul(mul(x, a:const), b:const) -> mul(x, {a * b});
  mul(div(x, a:const), b:const) -> mul(x, {b / a});
  div(mul(x, a:const), b:const) -> mul(x, {a / b});
  div(div(x, a:const), b:const) -> div(x, {a * b});
  add(add(x, a:const), b:const) -> add(x, {a + b});
  add(sub(x, a:const), b:const) -> add(x, {b - a});
  sub(add(x, a:const), b:const) -> add(x, {a - b});
  sub(sub(x, a:const), b:const) -> sub(x, {a + b});
  mul(neg(x), a:const) -> mul(x, {-a});
  neg(mul(x, a:const)) -> mul(x, {-a});
}
fusion FuseAddN "add_n(x, y) of two -> add(x, y), which takes activations" {
  add_n(x, y) -> add(x, y) where is_float(x);
}
late fusion FuseNeg "x + -y -> x - y" {
  add(x, neg(y)) -> sub(x, y);
  sub(x, neg(y)) -> add(x, y);
}
# Normalizations are spelled so; of close numbers the difference is exact, the products are not.
# Beside a third summand the products by `a` are as large as x, or they cost less than it.
late fusion FuseCommonFactor "x * a - m * a -> (x - m) * a" {
  sub(mul(x, a), mul(m, a)) -> mul(sub(x, m), a) where is_float(x);
  add(mul(x, a), mul(neg(m), a)) -> mul(sub(x, m), a) where is_float(x);
  add(mul(x, a), mul(neg(m), a), y) -> add(mul(sub(x, m), a), y)
    where is_float(x), same_shape(a, x);
  add(mul(x, a), sub(y, mul(m, a))) -> add(mul(sub(x, m), a), y)
    where is_float(x), same_shape(a, x);
}
late fusion FuseReciprocal "x * (1 / y) -> x / y, 1 / sqrt(x) -> rsqrt(x)" {
  div(1, sqrt(x)) -> rsqrt(x);
  mul(x, div(1, y)) -> div(x, y) where is_float(x);
}
late fusion FuseSquaredDifference "(x - y)^2 -> squared_difference(x, y)" {
  square(sub(x, y)) -> squared_difference(x, y);
  mul(d@sub(x, y), d) -> squared_difference(x, y) where is_float(x);
}
late fusion FuseMaximumZero "max(x, 0) -> relu(x)" {
  maximum(x, 0) -> relu(x) where is_float(x);
}
late fusion FuseNotEqual "!(x == y) -> x != y" {
  logical_not(equal(x, y)) -> not_equal(x, y);
  logical_not(not_equal(x, y)) -> equal(x, y);
}
)rules";

}  // namespace

absl::string_view BuiltinFusionText() { return kText; }

}  // namespace smelt
