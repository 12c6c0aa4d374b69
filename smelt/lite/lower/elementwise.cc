// Operators of one element at a time.
#include <algorithm>

#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

LoweredEndpoints HardSwish(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint three, l.Number(3));
  ASSIGN_OR_RETURN(const Endpoint sixth, l.Number(1.0f / 6));
  ASSIGN_OR_RETURN(const Endpoint sum, l.Add("AddV2", {n.input(0), three}));
  ASSIGN_OR_RETURN(const Endpoint clamped, l.Add("Relu6", {sum}));
  ASSIGN_OR_RETURN(const Endpoint product, l.Add("Mul", {n.input(0), clamped}));
  return OneOf(l.Add("Mul", {product, sixth}));
}

// max(x, 0) + alpha * min(x, 0).
LoweredEndpoints Prelu(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint zero, l.Number(0));
  ASSIGN_OR_RETURN(const Endpoint above, l.Add("Relu", {n.input(0)}));
  ASSIGN_OR_RETURN(const Endpoint below, l.Add("Minimum", {n.input(0), zero}));
  ASSIGN_OR_RETURN(const Endpoint scaled, l.Add("Mul", {below, n.input(1)}));
  return OneOf(l.Add("AddV2", {above, scaled}));
}

LoweredEndpoints Cast(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("DstT", n.output_types[0]);
  return OneOf(l.Add("Cast", InputsOf(n), std::move(attrs)));
}

constexpr LowerRow kElementwiseLowering[] = {
    {"tfl.abs", SameOp, "Abs"},
    {"tfl.add", SameOp, "AddV2"},
    {"tfl.atan2", SameOp, "Atan2"},
    {"tfl.bitwise_xor", SameOp, "BitwiseXor"},
    {"tfl.ceil", SameOp, "Ceil"},
    {"tfl.complex_abs", SameOp, "ComplexAbs"},
    {"tfl.cos", SameOp, "Cos"},
    {"tfl.div", SameOp, "Div"},
    {"tfl.elu", SameOp, "Elu"},
    {"tfl.equal", SameOp, "Equal"},
    {"tfl.exp", SameOp, "Exp"},
    {"tfl.floor", SameOp, "Floor"},
    {"tfl.floor_div", SameOp, "FloorDiv"},
    {"tfl.floor_mod", SameOp, "FloorMod"},
    {"tfl.greater", SameOp, "Greater"},
    {"tfl.greater_equal", SameOp, "GreaterEqual"},
    {"tfl.imag", SameOp, "Imag"},
    {"tfl.less", SameOp, "Less"},
    {"tfl.less_equal", SameOp, "LessEqual"},
    {"tfl.log", SameOp, "Log"},
    {"tfl.logical_and", SameOp, "LogicalAnd"},
    {"tfl.logical_not", SameOp, "LogicalNot"},
    {"tfl.logical_or", SameOp, "LogicalOr"},
    {"tfl.logistic", SameOp, "Sigmoid"},
    {"tfl.maximum", SameOp, "Maximum"},
    {"tfl.minimum", SameOp, "Minimum"},
    {"tfl.mul", SameOp, "Mul"},
    {"tfl.neg", SameOp, "Neg"},
    {"tfl.not_equal", SameOp, "NotEqual"},
    {"tfl.pow", SameOp, "Pow"},
    {"tfl.real", SameOp, "Real"},
    {"tfl.relu", SameOp, "Relu"},
    {"tfl.relu6", SameOp, "Relu6"},
    {"tfl.right_shift", SameOp, "RightShift"},
    {"tfl.round", SameOp, "Round"},
    {"tfl.rsqrt", SameOp, "Rsqrt"},
    {"tfl.select", SameOp, "Select"},
    {"tfl.select_v2", SameOp, "SelectV2"},
    {"tfl.sign", SameOp, "Sign"},
    {"tfl.sin", SameOp, "Sin"},
    {"tfl.sqrt", SameOp, "Sqrt"},
    {"tfl.square", SameOp, "Square"},
    {"tfl.squared_difference", SameOp, "SquaredDifference"},
    {"tfl.sub", SameOp, "Sub"},
    {"tfl.tanh", SameOp, "Tanh"},
    {"tfl.zeros_like", SameOp, "ZerosLike"},
    {"tfl.add_n", SameOp, "AddN"},
    {"tfl.leaky_relu", SameOp, "LeakyRelu", {{"alpha", "alpha"}}},
    {"tfl.hard_swish", HardSwish},
    {"tfl.prelu", Prelu},
    {"tfl.cast", Cast},
};

}  // namespace

std::span<const LowerRow> ElementwiseLowering() { return kElementwiseLowering; }

}  // namespace smelt
