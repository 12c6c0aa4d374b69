// Ops of one element at a time.
#include <algorithm>

#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

constexpr DtypeSet kFloat = Types(Dtype::kFloat);
constexpr DtypeSet kNumbers = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64);
constexpr DtypeSet kCompared =
    Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8, Dtype::kUint8, Dtype::kInt16);
constexpr DtypeSet kEqual = kCompared | Types(Dtype::kBool, Dtype::kString);

// One operator of the same inputs, without options.
LiteEndpoints SameOperator(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, l.row().types));
  RETURN_IF_ERROR(CheckBroadcast(n, l));
  if (n.Is("BiasAdd") && n.String("data_format", "NHWC") != "NHWC" && l.rank(n.input(0)) != 2) {
    return Unimplemented("channels come second: NHWC is wanted");
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
  return One(l.Add("tfl.leaky_relu", Inputs(n), Options({{"alpha", n.Float("alpha", 0.2f)}}),
                   l.OutputOf(n)));
}

LiteEndpoints AddN(Node& n, Legalizer& l) {
  if (n.num_inputs() == 1) return LiteEndpoints({n.input(0)});
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32)));
  return One(l.Add("tfl.add_n", Inputs(n), {}, l.OutputOf(n)));
}

constexpr DtypeSet kCastTypes = Types(
    Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kUint8, Dtype::kInt8, Dtype::kInt16,
    Dtype::kUint16, Dtype::kUint32, Dtype::kBool, Dtype::kComplex64, Dtype::kHalf, Dtype::kDouble);

LiteEndpoints Cast(Node& n, Legalizer& l) {
  const Dtype from = l.type(n.input(0)), to = n.output_types[0];
  if (from == to) return LiteEndpoints({n.input(0)});
  if (!Has(kCastTypes, from) || !Has(kCastTypes, to)) {
    return Unimplemented("no operator casts ", DtypeName(from), " to ", DtypeName(to));
  }
  return One(l.Add("tfl.cast", Inputs(n), Options({{"in_data_type", from}, {"out_data_type", to}}),
                   l.OutputOf(n)));
}

LiteEndpoints Select(Node& n, Legalizer& l) {
  const PartialShape c = l.shape(n.input(0)), x = l.shape(n.input(1)), y = l.shape(n.input(2));
  const bool same = c.known_rank() && c.rank() == x.rank() && c.rank() == y.rank();
  const bool rows = c.rank() == 1 && x.known_rank() && n.Is("Select");
  // A vector chooses rows there, which broadcasting would not.
  const bool narrow = same || rows || (n.Is("Select") && c.rank() == 0);
  return One(l.Add(narrow && n.Is("Select") ? OpName("tfl.select") : OpName("tfl.select_v2"),
                   Inputs(n), {}, l.OutputOf(n)));
}

// ---- ops that are a few operators

LiteEndpoints Identity(Node& n, Legalizer&) {
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) out.push_back(n.input(i));
  return out;
}

LiteEndpoints Reciprocal(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  return One(l.Add("tfl.div", {l.Floats(1), n.input(0)}, {}, l.OutputOf(n)));
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
  ASSIGN_OR_RETURN(const Endpoint positive, l.Add("tfl.relu", Inputs(n), {}, out));
  ASSIGN_OR_RETURN(const Endpoint scaled, l.Add("tfl.mul", {positive, l.Floats(kScale)}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint negative,
                   l.Add("tfl.minimum", {n.input(0), l.Floats(0)}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint elu, l.Add("tfl.elu", {negative}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint below,
                   l.Add("tfl.mul", {elu, l.Floats(kScale * kAlpha)}, {}, out));
  return One(l.Add("tfl.add", {scaled, below}, {}, out));
}

LiteEndpoints ClipByValue(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompared));
  ASSIGN_OR_RETURN(const Endpoint low,
                   l.Add("tfl.minimum", {n.input(0), n.input(2)}, {}, l.OutputOf(n)));
  return One(l.Add("tfl.maximum", {low, n.input(1)}, {}, l.OutputOf(n)));
}

LiteEndpoints DivNoNan(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  RETURN_IF_ERROR(CheckBroadcast(n, l));
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint quotient, l.Add("tfl.div", Inputs(n), {}, out));
  ASSIGN_OR_RETURN(const Endpoint zero, l.Add("tfl.equal", {n.input(1), l.Floats(0)}, {},
                                              {Dtype::kBool, l.shape(n.input(1))}));
  return One(l.Add("tfl.select_v2", {zero, l.Floats(0), quotient}, {}, out));
}

// The first operand where it is zero, whatever the product would be.
LiteEndpoints MulNoNan(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  RETURN_IF_ERROR(CheckBroadcast(n, l));
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint product, l.Add("tfl.mul", Inputs(n), {}, out));
  ASSIGN_OR_RETURN(const Endpoint zero, l.Add("tfl.equal", {n.input(1), l.Floats(0)}, {},
                                              {Dtype::kBool, l.shape(n.input(1))}));
  return One(l.Add("tfl.select_v2", {zero, l.Floats(0), product}, {}, out));
}

LiteEndpoints IsNan(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloat));
  return One(l.Add("tfl.not_equal", {n.input(0), n.input(0)}, {}, l.OutputOf(n)));
}

LiteEndpoints OnesLike(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kNumbers));
  ASSIGN_OR_RETURN(const Endpoint zeros, l.Add("tfl.zeros_like", Inputs(n), {}, l.OutputOf(n)));
  ASSIGN_OR_RETURN(const Attr one, UniformTensor(n.output_types[0], Shape(), 1));
  ASSIGN_OR_RETURN(const Tensor value,
                   (*one.get<std::shared_ptr<const TensorValue>>())->Materialize());
  return One(l.Add("tfl.add", {zeros, l.Const(value)}, {}, l.OutputOf(n)));
}

constexpr ExportRow kElementwiseRows[] = {
    {"Abs", SameOperator, "tfl.abs", Types(Dtype::kFloat, Dtype::kInt32)},
    {"Atan2", SameOperator, "tfl.atan2", Types(Dtype::kFloat, Dtype::kDouble)},
    {"BiasAdd", SameOperator, "tfl.add", kNumbers},
    {"BitwiseXor", SameOperator, "tfl.bitwise_xor",
     Types(Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kUint8, Dtype::kUint16,
           Dtype::kUint32)},
    {"Ceil", SameOperator, "tfl.ceil", kFloat},
    {"ComplexAbs", SameOperator, "tfl.complex_abs", Types(Dtype::kComplex64, Dtype::kComplex128)},
    {"Cos", SameOperator, "tfl.cos", kFloat},
    {"Elu", SameOperator, "tfl.elu", kFloat},
    {"Equal", SameOperator, "tfl.equal", kEqual},
    {"Exp", SameOperator, "tfl.exp", kFloat},
    {"Floor", SameOperator, "tfl.floor", kFloat},
    {"FloorDiv", SameOperator, "tfl.floor_div", kNumbers & ~Types(Dtype::kInt64)},
    {"FloorMod", SameOperator, "tfl.floor_mod", kNumbers},
    {"Greater", SameOperator, "tfl.greater", kCompared},
    {"GreaterEqual", SameOperator, "tfl.greater_equal", kCompared},
    {"Imag", SameOperator, "tfl.imag", Types(Dtype::kComplex64, Dtype::kComplex128)},
    {"Less", SameOperator, "tfl.less", kCompared},
    {"LessEqual", SameOperator, "tfl.less_equal", kCompared},
    {"Log", SameOperator, "tfl.log", kFloat},
    {"LogicalAnd", SameOperator, "tfl.logical_and", Types(Dtype::kBool)},
    {"LogicalNot", SameOperator, "tfl.logical_not", Types(Dtype::kBool)},
    {"LogicalOr", SameOperator, "tfl.logical_or", Types(Dtype::kBool)},
    {"Maximum", SameOperator, "tfl.maximum", kCompared},
    {"Minimum", SameOperator, "tfl.minimum", kCompared},
    {"Neg", SameOperator, "tfl.neg", kNumbers},
    {"NotEqual", SameOperator, "tfl.not_equal", kEqual},
    {"Pow", SameOperator, "tfl.pow", Types(Dtype::kFloat, Dtype::kInt32)},
    {"Real", SameOperator, "tfl.real", Types(Dtype::kComplex64, Dtype::kComplex128)},
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
    {"ZerosLike", SameOperator, "tfl.zeros_like", kNumbers},
    {"Add", SameOperator, "tfl.add", kNumbers},
    {"AddV2", SameOperator, "tfl.add", kNumbers},
    {"Sub", SameOperator, "tfl.sub", kNumbers},
    {"Mul", SameOperator, "tfl.mul", kNumbers},
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
    {"OnesLike", OnesLike},
};

}  // namespace

std::span<const ExportRow> ElementwiseExport() { return kElementwiseRows; }

}  // namespace smelt
