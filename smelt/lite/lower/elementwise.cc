// Operators of one element at a time.
#include <algorithm>

#include "absl/strings/match.h"
#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

LoweredEndpoints HardSwish(Node& n, Lowering& l) {
  const Dtype type = l.type(n.input(0));
  ASSIGN_OR_RETURN(const Endpoint three, l.Number(3, type));
  ASSIGN_OR_RETURN(const Endpoint sixth, l.Number(1.0f / 6, type));
  ASSIGN_OR_RETURN(const Endpoint sum, l.Add("AddV2", {n.input(0), three}));
  ASSIGN_OR_RETURN(const Endpoint clamped, l.Add("Relu6", {sum}));
  ASSIGN_OR_RETURN(const Endpoint product, l.Add("Mul", {n.input(0), clamped}));
  return OneOf(l.Add("Mul", {product, sixth}));
}

// max(x, 0) + alpha * min(x, 0).
LoweredEndpoints Prelu(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint zero, l.Number(0, l.type(n.input(0))));
  ASSIGN_OR_RETURN(const Endpoint above, l.Add("Relu", {n.input(0)}));
  ASSIGN_OR_RETURN(const Endpoint below, l.Add("Minimum", {n.input(0), zero}));
  ASSIGN_OR_RETURN(const Endpoint scaled, l.Add("Mul", {below, n.input(1)}));
  return OneOf(l.Add("AddV2", {above, scaled}));
}

LoweredEndpoints Cast(Node& n, Lowering& l) {
  constexpr Dtype kReals[] = {Dtype::kFloat, Dtype::kDouble, Dtype::kHalf, Dtype::kComplex64,
                              Dtype::kComplex128};
  constexpr Dtype kIntegers[] = {Dtype::kInt8,  Dtype::kUint8,  Dtype::kInt16, Dtype::kUint16,
                                 Dtype::kInt32, Dtype::kUint32, Dtype::kInt64, Dtype::kUint64};
  const auto among = [](Dtype type, std::span<const Dtype> types) {
    return std::ranges::find(types, type) != types.end();
  };
  if (n.Is("tfl.cast") && among(l.type(n.input(0)), kReals) &&
      among(n.output_types[0], kIntegers)) {
    return KeptForKernel(n, l);
  }
  AttrMap attrs;
  attrs.Set("DstT", n.output_types[0]);
  return OneOf(l.Add("Cast", InputsOf(n), std::move(attrs)));
}

LoweredEndpoints Clamped(Endpoint e, double low, double high, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint least, l.Number(low, l.type(e)));
  ASSIGN_OR_RETURN(const Endpoint most, l.Number(high, l.type(e)));
  ASSIGN_OR_RETURN(const Endpoint above, l.Add("Maximum", {e, least}));
  return OneOf(l.Add("Minimum", {above, most}));
}
LoweredEndpoints ReluN1To1(Node& n, Lowering& l) { return Clamped(n.input(0), -1, 1, l); }
LoweredEndpoints Relu0To1(Node& n, Lowering& l) { return Clamped(n.input(0), 0, 1, l); }

LoweredEndpoints Bitcast(Node& n, Lowering& l) {
  // A truth value is a byte of 0 or 1, whose bits TensorFlow's op does not take.
  Endpoint from = n.input(0);
  const Dtype to = n.output_types[0];
  if (l.type(from) == Dtype::kBool) {
    AttrMap byte;
    byte.Set("DstT", Dtype::kUint8);
    ASSIGN_OR_RETURN(from, l.Add("Cast", {from}, std::move(byte)));
    if (to == Dtype::kUint8) return std::vector<Endpoint>{from};
  }
  AttrMap attrs;
  attrs.Set("type", to);
  return OneOf(l.Add("Bitcast", {from}, std::move(attrs)));
}

LoweredEndpoints Compare(Node& n, Lowering& l) {
  struct Direction {
    absl::string_view name;
    OpName op;
  };
  constexpr Direction kDirections[] = {{"EQ", "Equal"},        {"NE", "NotEqual"},
                                       {"GE", "GreaterEqual"}, {"GT", "Greater"},
                                       {"LE", "LessEqual"},    {"LT", "Less"}};
  const std::string direction = n.String("comparison_direction");
  for (const auto& [name, op] : kDirections) {
    if (absl::EndsWith(direction, name)) return OneOf(l.Add(op, InputsOf(n)));
  }
  return InvalidArgument("it compares by ", direction);
}

// min(max(x, low), high): the operands are low, x, high.
LoweredEndpoints Clamp(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint above, l.Add("Maximum", {n.input(1), n.input(0)}));
  return OneOf(l.Add("Minimum", {above, n.input(2)}));
}

// The sign of a root is that of its argument.
LoweredEndpoints CubeRoot(Node& n, Lowering& l) {
  const Dtype type = l.type(n.input(0));
  ASSIGN_OR_RETURN(const Endpoint third, l.Number(1.0 / 3, type));
  ASSIGN_OR_RETURN(const Endpoint size, l.Add("Abs", {n.input(0)}));
  ASSIGN_OR_RETURN(const Endpoint root, l.Add("Pow", {size, third}));
  ASSIGN_OR_RETURN(const Endpoint sign, l.Add("Sign", {n.input(0)}));
  return OneOf(l.Add("Mul", {sign, root}));
}

// Nothing is left of what is shifted by all bits of its type, where TensorFlow's op shifts by one
// less.
LoweredEndpoints ShiftLeft(Node& n, Lowering& l) {
  const Dtype type = l.type(n.input(0));
  const auto bits = static_cast<double>(8 * DtypeSize(type));
  ASSIGN_OR_RETURN(const Endpoint shifted, l.Add("LeftShift", InputsOf(n)));
  ASSIGN_OR_RETURN(const Endpoint least, l.Number(0, type));
  ASSIGN_OR_RETURN(const Endpoint beyond, l.Number(bits, type));
  ASSIGN_OR_RETURN(const Endpoint forward, l.Add("GreaterEqual", {n.input(1), least}));
  ASSIGN_OR_RETURN(const Endpoint within, l.Add("Less", {n.input(1), beyond}));
  ASSIGN_OR_RETURN(const Endpoint fits, l.Add("LogicalAnd", {forward, within}));
  return OneOf(l.Add("SelectV2", {fits, shifted, least}));
}

// Parts of complex numbers are of their precision.
LoweredEndpoints PartOfComplex(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("T", n.input_types[0]);
  attrs.Set("Tout", n.output_types[0]);
  return OneOf(l.Add(l.row().tensorflow, {n.input(0)}, std::move(attrs)));
}

constexpr LowerRow kElementwiseLowering[] = {
    {"tfl.abs", SameOp, "Abs"},
    {"tfl.add", SameOp, "AddV2"},
    {"tfl.atan2", SameOp, "Atan2"},
    {"tfl.bitwise_xor", SameOp, "BitwiseXor"},
    {"tfl.ceil", SameOp, "Ceil"},
    {"tfl.complex_abs", PartOfComplex, "ComplexAbs"},
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
    {"tfl.imag", PartOfComplex, "Imag"},
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
    {"tfl.real", PartOfComplex, "Real"},
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
    {"tfl.relu_n1_to_1", ReluN1To1},
    {"tfl.relu_0_to_1", Relu0To1},
    {"tfl.bitcast", Bitcast},
    {"tfl.bucketize", SameOp, "Bucketize", {{"boundaries", "boundaries"}}},
    {"tfl.fake_quant",
     SameOp,
     "FakeQuantWithMinMaxArgs",
     {{"min", "min"}, {"max", "max"}, {"num_bits", "num_bits"}, {"narrow_range", "narrow_range"}}},
    {"tfl.stablehlo_abs", SameOp, "Abs"},
    {"tfl.stablehlo_cbrt", CubeRoot},
    {"tfl.stablehlo_clamp", Clamp},
    {"tfl.stablehlo_compare", Compare},
    {"tfl.stablehlo_convert", Cast},
    {"tfl.stablehlo_cosine", SameOp, "Cos"},
    {"tfl.stablehlo_divide", SameOp, "Div"},
    {"tfl.stablehlo_exponential", SameOp, "Exp"},
    {"tfl.stablehlo_floor", SameOp, "Floor"},
    {"tfl.stablehlo_log", SameOp, "Log"},
    {"tfl.stablehlo_logistic", SameOp, "Sigmoid"},
    {"tfl.stablehlo_negate", SameOp, "Neg"},
    {"tfl.stablehlo_power", SameOp, "Pow"},
    {"tfl.stablehlo_remainder", SameOp, "TruncateMod"},
    {"tfl.stablehlo_rsqrt", SameOp, "Rsqrt"},
    {"tfl.stablehlo_select", SameOp, "SelectV2"},
    {"tfl.stablehlo_shift_left", ShiftLeft},
    {"tfl.stablehlo_subtract", SameOp, "Sub"},
    {"tfl.stablehlo_tanh", SameOp, "Tanh"},
};

}  // namespace

std::span<const LowerRow> ElementwiseLowering() { return kElementwiseLowering; }

}  // namespace smelt
