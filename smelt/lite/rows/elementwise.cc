// Ops of one element at a time.
#include <algorithm>
#include <limits>

#include "smelt/graph/op_facts.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kFloat = Types(Dtype::kFloat);
constexpr DtypeSet kNumbers = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64);
constexpr DtypeSet kCompared =
    Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8, Dtype::kUint8, Dtype::kInt16);
constexpr DtypeSet kOrdered = kNumbers | Types(Dtype::kInt16);
constexpr DtypeSet kEqual = kOrdered | Types(Dtype::kBool, Dtype::kString);

// Of integers that the operator does not take, by those that take them.
LiteEndpoints IntegerFunction(Node& n, Legalizer& l) {
  const Dtype type = n.input_types[0];
  OperatorChain c(l);
  const Endpoint x = n.input(0);
  if (n.Is("Abs")) return c.Done(c.Max(x, c.Op("tfl.neg", {x})));
  if (n.Is("Square")) return c.Done(c.Mul(x, x));
  if (n.Is("Sign")) return c.Done(c.Sub(c.Cast(c.Less(0, x), type), c.Cast(c.Less(x, 0), type)));
  const Endpoint difference = c.Sub(x, n.input(1));  // SquaredDifference
  return c.Done(c.Mul(difference, difference));
}

// One operator of the same inputs, without options.
LiteEndpoints SameOperator(Node& n, Legalizer& l) {
  const Dtype type = n.input_types[0];
  if (type == Dtype::kComplex64 || type == Dtype::kComplex128) return ComplexArithmetic(n, l);
  constexpr OpSet kOfIntegers = {"Abs", "Square", "Sign", "SquaredDifference"};
  const bool integer = type == Dtype::kInt32 || type == Dtype::kInt64;
  if (integer && !Has(l.row().types, type) && n.Is(kOfIntegers)) return IntegerFunction(n, l);
  RETURN_IF_ERROR(CheckType(n, l.row().types));
  if (n.Is("BiasAdd") && n.String("data_format", "NHWC") != "NHWC") {
    // Channels that come second broadcast over what is behind them.
    const auto bias = l.Constant(n.input(1));
    const int rank = l.rank(n.input(0));
    if (!bias || rank < 2) return Unimplemented("channels come second: a constant bias is wanted");
    std::vector<int64_t> sizes(static_cast<size_t>(rank) - 1, 1);
    sizes[0] = bias->num_elements();
    return One(
        l.Add("tfl.add", {n.input(0), l.Const(bias->WithShape(Shape(sizes)))}, {}, l.OutputOf(n)));
  }
  return One(l.Add(l.row().lite, Inputs(n), {}, l.OutputOf(n)));
}

LiteEndpoints Relu(Node& n, Legalizer& l) {
  if (l.type(n.input(0)) == Dtype::kFloat) {
    return One(l.Add("tfl.relu", Inputs(n), {}, l.OutputOf(n)));
  }
  RETURN_IF_ERROR(CheckType(n, kCompared));
  ASSIGN_OR_RETURN(const Tensor zero, Tensor::Zeros(l.type(n.input(0)), Shape()));
  return One(l.Add("tfl.maximum", {n.input(0), l.Const(zero)}, {}, l.OutputOf(n)));
}

LiteEndpoints LeakyRelu(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  const float alpha = n.Float("alpha", 0.2f);
  // As networks have it whose activations were trained away.
  if (alpha == 1) return LiteEndpoints({n.input(0)});
  return One(l.Add("tfl.leaky_relu", Inputs(n), Options({{"alpha", alpha}}), l.OutputOf(n)));
}

// Did the optimizer gather the model's own sums? They are ones again: ADD has kernels for integers
// and takes activations, ADD_N neither.
bool IsGathered(const Node& n) {
  return n.Find("_grappler_ArithmeticOptimizer_AddOpsRewriteStage") != nullptr;
}

LiteEndpoints AddN(Node& n, Legalizer& l) {
  if (n.num_inputs() == 1) return LiteEndpoints({n.input(0)});
  RETURN_IF_ERROR(CheckType(n, kNumbers));
  if (n.input_types[0] == Dtype::kInt64 || IsGathered(n)) {
    OperatorChain c(l);
    Endpoint sum = n.input(0);
    for (int i = 1; i < n.num_inputs(); ++i) sum = c.Add(sum, n.input(i));
    return c.Done(sum);
  }
  return One(l.Add("tfl.add_n", Inputs(n), {}, l.OutputOf(n)));
}

constexpr DtypeSet kCastTypes =
    Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kUint8, Dtype::kInt8, Dtype::kInt16,
          Dtype::kUint16, Dtype::kUint32, Dtype::kBool, Dtype::kComplex64, Dtype::kHalf,
          Dtype::kDouble, Dtype::kBfloat16);

LiteEndpoints Cast(Node& n, Legalizer& l) {
  const Dtype from = l.type(n.input(0)), to = n.output_types[0];
  if (from == to) return LiteEndpoints({n.input(0)});
  if (!Has(kCastTypes, from) || !Has(kCastTypes, to)) {
    return Unimplemented("no operator casts ", DtypeName(from), " to ", DtypeName(to));
  }
  if (to == Dtype::kComplex64) return CastToComplex(n, l);
  return One(l.Add("tfl.cast", Inputs(n), Options({{"in_data_type", from}, {"out_data_type", to}}),
                   l.OutputOf(n)));
}

LiteEndpoints Select(Node& n, Legalizer& l) {
  if (n.output_types[0] == Dtype::kString) return SelectedTexts(n, l);
  const PartialShape c = l.shape(n.input(0)), x = l.shape(n.input(1)), y = l.shape(n.input(2));
  const bool same = c.known_rank() && c.rank() == x.rank() && c.rank() == y.rank();
  const bool rows = c.rank() == 1 && x.known_rank() && n.Is("Select");
  // A vector chooses rows there, which broadcasting would not.
  const bool narrow = same || rows || (n.Is("Select") && c.rank() == 0);
  return One(l.Add(narrow && n.Is("Select") ? OpName("tfl.select") : OpName("tfl.select_v2"),
                   Inputs(n), {}, l.OutputOf(n)));
}

LiteEndpoints Bitcast(Node& n, Legalizer& l) {
  return One(l.Add("tfl.bitcast", Inputs(n), {}, l.OutputOf(n)));
}

LiteEndpoints BroadcastArgs(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kInt32, Dtype::kInt64)));
  return One(l.Add("tfl.broadcast_args", Inputs(n), {}, l.OutputOf(n)));
}

// ---- ops that are a few operators

// The gradient: dy * y * (1 - y).
LiteEndpoints SigmoidGrad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint rest, l.Add("tfl.sub", {l.Floats(1), n.input(0)}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint slope, l.Add("tfl.mul", {n.input(0), rest}, {}, out));
  return One(l.Add("tfl.mul", {n.input(1), slope}, {}, out));
}

LiteEndpoints TanhGrad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint square, l.Add("tfl.mul", {n.input(0), n.input(0)}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint slope, l.Add("tfl.sub", {l.Floats(1), square}, {}, out));
  return One(l.Add("tfl.mul", {n.input(1), slope}, {}, out));
}

// Compared with the largest number: an infinity as a constant may be made finite (export.h).
LiteEndpoints Infinity(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  ASSIGN_OR_RETURN(const Endpoint size,
                   l.Add("tfl.abs", Inputs(n), {}, {Dtype::kFloat, l.shape(n.input(0))}));
  return One(
      l.Add(l.row().lite, {size, l.Floats(std::numeric_limits<float>::max())}, {}, l.OutputOf(n)));
}

LiteEndpoints Atan(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  // Its operator does not broadcast.
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint zeros, l.Add("tfl.zeros_like", {n.input(0)}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint ones, l.Add("tfl.add", {zeros, l.Floats(1)}, {}, out));
  return One(l.Add("tfl.atan2", {n.input(0), ones}, {}, out));
}

// The other side of the right triangle over x: sqrt((1 - x) * (1 + x)).
StatusOr<Endpoint> OtherSide(Node& n, Legalizer& l) {
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint below, l.Add("tfl.sub", {l.Floats(1), n.input(0)}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint above, l.Add("tfl.add", {n.input(0), l.Floats(1)}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint square, l.Add("tfl.mul", {below, above}, {}, out));
  return l.Add("tfl.sqrt", {square}, {}, out);
}

LiteEndpoints Asin(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  ASSIGN_OR_RETURN(const Endpoint side, OtherSide(n, l));
  return One(l.Add("tfl.atan2", {n.input(0), side}, {}, l.OutputOf(n)));
}

LiteEndpoints Acos(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  ASSIGN_OR_RETURN(const Endpoint side, OtherSide(n, l));
  return One(l.Add("tfl.atan2", {side, n.input(0)}, {}, l.OutputOf(n)));
}

// Half the sum, or the difference, of exp(x) and exp(-x).
LiteEndpoints Hyperbolic(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint up, l.Add("tfl.exp", Inputs(n), {}, out));
  ASSIGN_OR_RETURN(const Endpoint minus, l.Add("tfl.neg", Inputs(n), {}, out));
  ASSIGN_OR_RETURN(const Endpoint down, l.Add("tfl.exp", {minus}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint sum, l.Add(l.row().lite, {up, down}, {}, out));
  return One(l.Add("tfl.mul", {sum, l.Floats(0.5f)}, {}, out));
}

// Zero where x is, whatever the other factor would be: f(y) * x, or x / y.
LiteEndpoints ZeroWhereZero(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  const LiteOutput out = l.OutputOf(n);
  const Endpoint x = n.input(0), y = n.input(1);
  Endpoint value;
  if (n.Is("Xdivy")) {
    ASSIGN_OR_RETURN(value, l.Add("tfl.div", {x, y}, {}, out));
  } else {
    Endpoint in = y;
    const LiteOutput of_y = {Dtype::kFloat, l.shape(y)};
    if (n.Is("Xlog1py")) {
      ASSIGN_OR_RETURN(in, l.Add("tfl.add", {y, l.Floats(1)}, {}, of_y));
    }
    ASSIGN_OR_RETURN(const Endpoint log, l.Add("tfl.log", {in}, {}, of_y));
    ASSIGN_OR_RETURN(value, l.Add("tfl.mul", {x, log}, {}, out));
  }
  ASSIGN_OR_RETURN(const Endpoint zero,
                   l.Add("tfl.equal", {x, l.Floats(0)}, {}, {Dtype::kBool, l.shape(x)}));
  return One(l.Add("tfl.select_v2", {zero, l.Floats(0), value}, {}, out));
}

// The remainder that has the dividend's sign: x - y * (x / y), division rounding to zero.
LiteEndpoints Remainder(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  if (n.input_types[0] != Dtype::kInt32) {
    // There is no division of int64, and that of floats is rounded: the remainder of the sizes, and
    // the dividend's sign.
    OperatorChain c(l);
    const Endpoint x = n.input(0), y = n.input(1);
    const bool floats = n.input_types[0] == Dtype::kFloat;
    const auto size_of = [&](Endpoint e) {
      return floats ? c.Op("tfl.abs", {e}) : c.Max(e, c.Op("tfl.neg", {e}));
    };
    const Endpoint size = size_of(x), by = size_of(y);
    const Endpoint rest = c.Op("tfl.floor_mod", {size, by});
    const Endpoint below = c.Less(x, 0);
    return c.Done(c.Select(below, c.Op("tfl.neg", {rest}), rest));
  }
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint quotient, l.Add("tfl.div", Inputs(n), {}, out));
  ASSIGN_OR_RETURN(const Endpoint whole, l.Add("tfl.mul", {quotient, n.input(1)}, {}, out));
  return One(l.Add("tfl.sub", {n.input(0), whole}, {}, out));
}

// Bits of both, which one operator has; the others are counted: x | y is x + y - (x & y).
LiteEndpoints Bits(Node& n, Legalizer& l) {
  constexpr DtypeSet kCounted = kNumbers & ~kFloat;
  constexpr DtypeSet kBits = Types(Dtype::kInt8, Dtype::kUint8, Dtype::kInt16, Dtype::kUint16,
                                   Dtype::kInt32, Dtype::kUint32, Dtype::kInt64);
  RETURN_IF_ERROR(CheckType(n, kBits));
  const Dtype type = n.input_types[0];
  if (l.rank(n.input(0)) < 0 || l.rank(n.input(1)) < 0) {
    return Unimplemented(
        "its operator does not broadcast, and the ranks of its inputs are unknown");
  }
  OperatorChain c(l);
  const Endpoint both = c.Op("tfl.stablehlo_and", {n.input(0), n.input(1)});
  if (n.Is("BitwiseAnd")) return c.Done(both);
  if (!Has(kCounted, type)) {
    const Endpoint either = c.Op("tfl.bitwise_xor", {n.input(0), n.input(1)});
    return c.Done(c.Op("tfl.bitwise_xor", {either, both}));
  }
  return c.Done(c.Sub(c.Add(n.input(0), n.input(1)), both));
}

// All bits but those of x.
LiteEndpoints Invert(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kInt8, Dtype::kInt16, Dtype::kInt32)));
  ASSIGN_OR_RETURN(const Tensor all, FilledTensor(n.input_types[0], Shape(), -1));
  return One(l.Add("tfl.bitwise_xor", {n.input(0), l.Const(all)}, {}, l.OutputOf(n)));
}

LiteEndpoints ApproximateEqual(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  const LiteOutput out = {Dtype::kFloat, l.shape({&n, 0})};
  ASSIGN_OR_RETURN(const Endpoint difference, l.Add("tfl.sub", Inputs(n), {}, out));
  ASSIGN_OR_RETURN(const Endpoint size, l.Add("tfl.abs", {difference}, {}, out));
  return One(l.Add("tfl.less", {size, l.Floats(n.Float("tolerance", 1e-5f))}, {}, l.OutputOf(n)));
}

LiteEndpoints Identity(Node& n, Legalizer&) {
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) out.push_back(n.input(i));
  return out;
}

LiteEndpoints Reciprocal(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat | Types(Dtype::kInt32)));
  const Endpoint one = n.input_types[0] == Dtype::kInt32 ? l.Int(1) : l.Floats(1);
  return One(l.Add("tfl.div", {one, n.input(0)}, {}, l.OutputOf(n)));
}

LiteEndpoints Log1p(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  ASSIGN_OR_RETURN(const Endpoint sum,
                   l.Add("tfl.add", {n.input(0), l.Floats(1)}, {}, l.OutputOf(n)));
  return One(l.Add("tfl.log", {sum}, {}, l.OutputOf(n)));
}

LiteEndpoints Expm1(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  ASSIGN_OR_RETURN(const Endpoint e, l.Add("tfl.exp", Inputs(n), {}, l.OutputOf(n)));
  return One(l.Add("tfl.sub", {e, l.Floats(1)}, {}, l.OutputOf(n)));
}

LiteEndpoints Softplus(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  ASSIGN_OR_RETURN(const Endpoint e, l.Add("tfl.exp", Inputs(n), {}, l.OutputOf(n)));
  ASSIGN_OR_RETURN(const Endpoint sum, l.Add("tfl.add", {e, l.Floats(1)}, {}, l.OutputOf(n)));
  return One(l.Add("tfl.log", {sum}, {}, l.OutputOf(n)));
}

LiteEndpoints Softsign(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  ASSIGN_OR_RETURN(const Endpoint abs, l.Add("tfl.abs", Inputs(n), {}, l.OutputOf(n)));
  ASSIGN_OR_RETURN(const Endpoint sum, l.Add("tfl.add", {abs, l.Floats(1)}, {}, l.OutputOf(n)));
  return One(l.Add("tfl.div", {n.input(0), sum}, {}, l.OutputOf(n)));
}

LiteEndpoints Tan(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  ASSIGN_OR_RETURN(const Endpoint sin, l.Add("tfl.sin", Inputs(n), {}, l.OutputOf(n)));
  ASSIGN_OR_RETURN(const Endpoint cos, l.Add("tfl.cos", Inputs(n), {}, l.OutputOf(n)));
  return One(l.Add("tfl.div", {sin, cos}, {}, l.OutputOf(n)));
}

// scale * x where x > 0, else scale * alpha * (exp(x) - 1), which is an Elu of another alpha.
LiteEndpoints Selu(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  constexpr float kScale = 1.0507009873554805F, kAlpha = 1.6732632423543772F;
  const LiteOutput out = l.OutputOf(n);
  // Below zero elu(x) is below zero, above it is x: a leaky relu scales the one and not the other.
  ASSIGN_OR_RETURN(const Endpoint elu, l.Add("tfl.elu", Inputs(n), {}, out));
  ASSIGN_OR_RETURN(const Endpoint scaled,
                   l.Add("tfl.leaky_relu", {elu}, Options({{"alpha", kAlpha}}), out));
  return One(l.Add("tfl.mul", {scaled, l.Floats(kScale)}, {}, out));
}

LiteEndpoints ClipByValue(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompared));
  ASSIGN_OR_RETURN(const Endpoint low,
                   l.Add("tfl.minimum", {n.input(0), n.input(2)}, {}, l.OutputOf(n)));
  return One(l.Add("tfl.maximum", {low, n.input(1)}, {}, l.OutputOf(n)));
}

LiteEndpoints DivNoNan(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint quotient, l.Add("tfl.div", Inputs(n), {}, out));
  ASSIGN_OR_RETURN(const Endpoint zero, l.Add("tfl.equal", {n.input(1), l.Floats(0)}, {},
                                              {Dtype::kBool, l.shape(n.input(1))}));
  return One(l.Add("tfl.select_v2", {zero, l.Floats(0), quotient}, {}, out));
}

// The first operand where it is zero, whatever the product would be.
LiteEndpoints MulNoNan(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint product, l.Add("tfl.mul", Inputs(n), {}, out));
  ASSIGN_OR_RETURN(const Endpoint zero, l.Add("tfl.equal", {n.input(1), l.Floats(0)}, {},
                                              {Dtype::kBool, l.shape(n.input(1))}));
  return One(l.Add("tfl.select_v2", {zero, l.Floats(0), product}, {}, out));
}

// ZEROS_LIKE has no kernel for bool, and no bool differs from itself.
LiteEndpoints ZerosLike(Node& n, Legalizer& l) {
  if (n.input_types[0] != Dtype::kBool) return SameOperator(n, l);
  return One(l.Add("tfl.not_equal", {n.input(0), n.input(0)}, {}, l.OutputOf(n)));
}

LiteEndpoints IsNan(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  return One(l.Add("tfl.not_equal", {n.input(0), n.input(0)}, {}, l.OutputOf(n)));
}

LiteEndpoints OnesLike(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kNumbers));
  ASSIGN_OR_RETURN(const Endpoint zeros, l.Add("tfl.zeros_like", Inputs(n), {}, l.OutputOf(n)));
  ASSIGN_OR_RETURN(const Tensor one, FilledTensor(n.output_types[0], Shape(), 1));
  return One(l.Add("tfl.add", {zeros, l.Const(one)}, {}, l.OutputOf(n)));
}

constexpr ExportRow kElementwiseRows[] = {
    {"Abs", SameOperator, "tfl.abs", Types(Dtype::kFloat, Dtype::kInt32)},
    {"Atan2", SameOperator, "tfl.atan2", Types(Dtype::kFloat, Dtype::kDouble)},
    {"BiasAdd", SameOperator, "tfl.add", kNumbers},
    {"BitwiseXor", SameOperator, "tfl.bitwise_xor",
     Types(Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kUint8, Dtype::kUint16,
           Dtype::kUint32)},
    {"Ceil", SameOperator, "tfl.ceil", kFloat},
    {"Cos", SameOperator, "tfl.cos", kFloat},
    {"Elu", SameOperator, "tfl.elu", kFloat},
    {"Equal", SameOperator, "tfl.equal", kEqual},
    {"Exp", SameOperator, "tfl.exp", kFloat},
    {"Floor", SameOperator, "tfl.floor", kFloat},
    {"FloorMod", SameOperator, "tfl.floor_mod", kNumbers | Types(Dtype::kInt8, Dtype::kInt16)},
    {"Greater", SameOperator, "tfl.greater", kOrdered},
    {"GreaterEqual", SameOperator, "tfl.greater_equal", kOrdered},
    {"Less", SameOperator, "tfl.less", kOrdered},
    {"LessEqual", SameOperator, "tfl.less_equal", kOrdered},
    {"Log", SameOperator, "tfl.log", kFloat},
    {"LogicalAnd", SameOperator, "tfl.logical_and", Types(Dtype::kBool)},
    {"LogicalNot", SameOperator, "tfl.logical_not", Types(Dtype::kBool)},
    {"LogicalOr", SameOperator, "tfl.logical_or", Types(Dtype::kBool)},
    {"Maximum", SameOperator, "tfl.maximum", kCompared},
    {"Minimum", SameOperator, "tfl.minimum", kCompared},
    {"Neg", SameOperator, "tfl.neg", kNumbers},
    {"NotEqual", SameOperator, "tfl.not_equal", kEqual},
    {"Pow", SameOperator, "tfl.pow", Types(Dtype::kFloat, Dtype::kInt32)},
    {"Relu6", SameOperator, "tfl.relu6", kFloat},
    {"RightShift", SameOperator, "tfl.right_shift",
     Types(Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kUint8, Dtype::kUint16,
           Dtype::kUint32)},
    {"Rint", SameOperator, "tfl.round", kFloat},
    {"Round", SameOperator, "tfl.round", kFloat},
    {"Rsqrt", SameOperator, "tfl.rsqrt", kFloat},
    {"Sigmoid", SameOperator, "tfl.logistic", kFloat},
    {"Sign", SameOperator, "tfl.sign", Types(Dtype::kFloat, Dtype::kDouble, Dtype::kInt32)},
    {"Sin", SameOperator, "tfl.sin", kFloat},
    {"Sqrt", SameOperator, "tfl.sqrt", kFloat},
    {"Square", SameOperator, "tfl.square", kFloat},
    {"SquaredDifference", SameOperator, "tfl.squared_difference",
     Types(Dtype::kFloat, Dtype::kInt32)},
    {"Tanh", SameOperator, "tfl.tanh", kFloat},
    {"ZerosLike", ZerosLike, "tfl.zeros_like", kNumbers | Types(Dtype::kBool)},
    {"Add", SameOperator, "tfl.add", kNumbers | Types(Dtype::kInt16)},
    {"AddV2", SameOperator, "tfl.add", kNumbers | Types(Dtype::kInt16)},
    {"Sub", SameOperator, "tfl.sub", kNumbers},
    {"Mul", SameOperator, "tfl.mul", kNumbers | Types(Dtype::kInt16, Dtype::kUint32)},
    {"Div", SameOperator, "tfl.div", Types(Dtype::kFloat, Dtype::kInt32)},
    {"RealDiv", SameOperator, "tfl.div", Types(Dtype::kFloat, Dtype::kInt32)},
    {"Relu", Relu},
    {"LeakyRelu", LeakyRelu},
    {"AddN", AddN},
    {"Cast", Cast},
    {"Select", Select},
    {"SelectV2", Select},
    {"Identity", Identity},
    {"IdentityN", Identity},
    {"StopGradient", Identity},
    {"PreventGradient", Identity},
    {"Snapshot", Identity},
    {"CheckNumerics", Identity},
    {"PlaceholderWithDefault", Identity},
    {"EnsureShape", Identity},
    {"XlaSharding", Identity},
    {"GuaranteeConst", Identity},
    {"CheckNumericsV2", Identity},
    {"DebugIdentity", Identity},
    {"Reciprocal", Reciprocal},
    {"Inv", Reciprocal},
    {"Log1p", Log1p},
    {"Expm1", Expm1},
    {"Softplus", Softplus},
    {"Softsign", Softsign},
    {"Tan", Tan},
    {"Selu", Selu},
    {"ClipByValue", ClipByValue},
    {"DivNoNan", DivNoNan},
    {"MulNoNan", MulNoNan},
    {"IsNan", IsNan},
    {"IsInf", Infinity, "tfl.greater"},
    {"IsFinite", Infinity, "tfl.less_equal"},
    {"Bitcast", Bitcast},
    {"BroadcastArgs", BroadcastArgs},
    {"SigmoidGrad", SigmoidGrad},
    {"TanhGrad", TanhGrad},
    {"Atan", Atan},
    {"Asin", Asin},
    {"Acos", Acos},
    {"Sinh", Hyperbolic, "tfl.sub"},
    {"Cosh", Hyperbolic, "tfl.add"},
    {"Xdivy", ZeroWhereZero},
    {"Xlogy", ZeroWhereZero},
    {"Xlog1py", ZeroWhereZero},
    {"TruncateMod", Remainder},
    {"Mod", Remainder},
    {"TruncateDiv", SameOperator, "tfl.div", Types(Dtype::kInt32)},
    {"Invert", Invert},
    {"BitwiseAnd", Bits},
    {"BitwiseOr", Bits},
    {"ApproximateEqual", ApproximateEqual},
    {"OnesLike", OnesLike},
};

}  // namespace

std::span<const ExportRow> ElementwiseExport() { return kElementwiseRows; }

}  // namespace smelt
