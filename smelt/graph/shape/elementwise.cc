// Shapes of ops that work element by element.
#include <algorithm>
#include <array>

#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

// With incompatible_shape_error = false, Equal and NotEqual answer with a scalar for shapes that do
// not broadcast. Dimensions of which one is 1 or missing, or that are the same, do.
Status EqualityShape(ShapeContext& ctx) {
  if (ctx.node().Bool("incompatible_shape_error", true)) return BroadcastShape(ctx);
  const PartialShape &a = ctx.input(0), &b = ctx.input(1);
  if (!a.known_rank() || !b.known_rank()) return OkStatus();
  auto out = BroadcastShapes(a, b);
  if (!out.ok()) {
    ctx.set_output(0, PartialShape(Shape()));
    return OkStatus();
  }
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const int64_t x = a[a.rank() - i], y = b[b.rank() - i];
    const bool same = x == y && x != kUnknownDim;
    if (!same && x != 1 && y != 1) return OkStatus();
  }
  ctx.set_output(0, *std::move(out));
  return OkStatus();
}

// Select: the condition has the values' shape, or is a scalar or a vector along their dimension 0.
Status SelectShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out, PartialShape::Merge(ctx.input(1), ctx.input(2)));
  const PartialShape& cond = ctx.input(0);
  if (cond.known_rank() && out.known_rank() && cond.rank() != 0) {
    if (cond.rank() == 1) {
      RETURN_IF_ERROR(RankAtLeast(out, 1));
      ASSIGN_OR_RETURN(const int64_t first, MergeDims(cond[0], out[0]));
      out.Set(0, first);
    } else {
      ASSIGN_OR_RETURN(out, PartialShape::Merge(out, cond));
    }
  } else if (cond.rank() > 1) {
    out = cond;
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status SelectV2Shape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out, BroadcastShapes(ctx.input(1), ctx.input(2)));
  ASSIGN_OR_RETURN(out, BroadcastShapes(out, ctx.input(0)));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// The last dimension, or the one after the batch in channels-first formats, is as long as the bias.
Status BiasAddShape(ShapeContext& ctx) {
  PartialShape out = ctx.input(0);
  ASSIGN_OR_RETURN(const PartialShape bias, WithRank(ctx.input(1), 1));
  RETURN_IF_ERROR(RankAtLeast(out, 2));
  if (out.known_rank()) {
    const bool first = ctx.node().String("data_format", "NHWC") == "NCHW";
    const int at = first ? 1 : out.rank() - 1;
    ASSIGN_OR_RETURN(const int64_t depth, MergeDims(out[at], bias[0]));
    out.Set(at, depth);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status BiasAddGradShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  RETURN_IF_ERROR(RankAtLeast(in, 2));
  int64_t depth = kUnknownDim;
  if (in.known_rank()) {
    depth = ctx.node().String("data_format", "NHWC") == "NCHW" ? in[1] : in[in.rank() - 1];
  }
  ctx.set_output(0, VectorShape(depth));
  return OkStatus();
}

// Each input is a scalar or has the one shape of the others.
Status BetaincShape(ShapeContext& ctx) {
  PartialShape out = Shape();
  bool unknown = false;
  for (int i = 0; i < 3; ++i) {
    const PartialShape& s = ctx.input(i);
    if (!s.known_rank()) {
      unknown = true;
    } else if (s.rank() > 0) {
      ASSIGN_OR_RETURN(out,
                       out.rank() == 0 ? StatusOr<PartialShape>(s) : PartialShape::Merge(out, s));
    }
  }
  if (unknown && out.rank() == 0) return OkStatus();
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status AddNShape(ShapeContext& ctx) {
  RETURN_IF_ERROR(MergedShape(ctx));
  if (ctx.num_inputs() > 0) ctx.set_held(0, ctx.held(0));
  return OkStatus();
}

Status AccumulateShape(ShapeContext& ctx) {
  PartialShape out = ctx.node().Get<PartialShape>("shape", {});
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    auto merged = PartialShape::Merge(out, ctx.input(i));
    if (!merged.ok()) return OkStatus();
    out = *std::move(merged);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// The shape that the attribute names, where it does not contradict the input.
Status EnsureShapeRule(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out,
                   PartialShape::Merge(ctx.input(0), ctx.node().Get<PartialShape>("shape", {})));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status BitcastShape(ShapeContext& ctx) {
  const size_t in = DtypeSize(ctx.node().Type("T")), out = DtypeSize(ctx.node().Type("type"));
  PartialShape s = ctx.input(0);
  if (!s.known_rank() || in == 0 || out == 0) return OkStatus();
  if (in > out) {
    // TensorFlow splits an element along a new last dimension, by sizes that divide each other.
    if (in % out != 0) return OkStatus();
    s.Add(static_cast<int64_t>(in / out));
  } else if (in < out) {
    const auto ratio = static_cast<int64_t>(out / in);
    RETURN_IF_ERROR(RankAtLeast(s, 1));
    const int64_t last = s[s.rank() - 1];
    if (last >= 0 && last != ratio) {
      return InvalidArgument("Cannot bitcast due to shape. ", last, " does not match ", ratio);
    }
    s = SubShape(s, 0, s.rank() - 1);
  }
  ctx.set_output(0, std::move(s));
  return OkStatus();
}

// Cross products are along a last dimension of 3.
Status CrossShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out, PartialShape::Merge(ctx.input(0), ctx.input(1)));
  RETURN_IF_ERROR(RankAtLeast(out, 1));
  if (out.known_rank()) {
    ASSIGN_OR_RETURN(const int64_t last, MergeDims(out[out.rank() - 1], 3));
    out.Set(out.rank() - 1, last);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

constexpr std::array kElementwiseRows = {
    // One input.
    ShapeRule{"Abs", SameShape},
    ShapeRule{"Acos", SameShape},
    ShapeRule{"Acosh", SameShape},
    ShapeRule{"Angle", SameShape},
    ShapeRule{"Asin", SameShape},
    ShapeRule{"Asinh", SameShape},
    ShapeRule{"Atan", SameShape},
    ShapeRule{"Atanh", SameShape},
    ShapeRule{"BesselI0", SameShape},
    ShapeRule{"BesselI0e", SameShape},
    ShapeRule{"BesselI1", SameShape},
    ShapeRule{"BesselI1e", SameShape},
    ShapeRule{"BesselJ0", SameShape},
    ShapeRule{"BesselJ1", SameShape},
    ShapeRule{"BesselK0", SameShape},
    ShapeRule{"BesselK0e", SameShape},
    ShapeRule{"BesselK1", SameShape},
    ShapeRule{"BesselK1e", SameShape},
    ShapeRule{"BesselY0", SameShape},
    ShapeRule{"BesselY1", SameShape},
    ShapeRule{"Bucketize", SameShape},
    ShapeRule{"Cast", SameShape},
    ShapeRule{"Ceil", SameShape},
    ShapeRule{"CheckNumerics", SameShape},
    ShapeRule{"ClipByValue", SameShape},
    ShapeRule{"ComplexAbs", SameShape},
    ShapeRule{"Conj", SameShape},
    ShapeRule{"Cos", SameShape},
    ShapeRule{"Cosh", SameShape},
    ShapeRule{"Dawsn", SameShape},
    ShapeRule{"DebugGradientIdentity", SameShape},
    ShapeRule{"DeepCopy", SameShape},
    ShapeRule{"Digamma", SameShape},
    ShapeRule{"Elu", SameShape},
    ShapeRule{"Erf", SameShape},
    ShapeRule{"Erfc", SameShape},
    ShapeRule{"Erfinv", SameShape},
    ShapeRule{"Exp", SameShape},
    ShapeRule{"Expint", SameShape},
    ShapeRule{"Expm1", SameShape},
    ShapeRule{"FakeQuantWithMinMaxArgs", SameShape},
    ShapeRule{"FakeQuantWithMinMaxVars", SameShape},
    ShapeRule{"FakeQuantWithMinMaxVarsPerChannel", SameShape},
    ShapeRule{"Floor", SameShape},
    ShapeRule{"FresnelCos", SameShape},
    ShapeRule{"FresnelSin", SameShape},
    ShapeRule{"Imag", SameShape},
    ShapeRule{"Invert", SameShape},
    ShapeRule{"IsFinite", SameShape},
    ShapeRule{"IsInf", SameShape},
    ShapeRule{"IsNan", SameShape},
    ShapeRule{"LeakyRelu", SameShape},
    ShapeRule{"Lgamma", SameShape},
    ShapeRule{"Log", SameShape},
    ShapeRule{"Log1p", SameShape},
    ShapeRule{"LogicalNot", SameShape},
    ShapeRule{"Ndtri", SameShape},
    ShapeRule{"Neg", SameShape},
    ShapeRule{"OnesLike", SameShape},
    ShapeRule{"PopulationCount", SameShape},
    ShapeRule{"PreventGradient", SameShape},
    ShapeRule{"QuantizeAndDequantizeV2", SameShape},
    ShapeRule{"Real", SameShape},
    ShapeRule{"Reciprocal", SameShape},
    ShapeRule{"Relu", SameShape},
    ShapeRule{"_UnaryOpsComposition", SameShape},
    ShapeRule{"Relu6", SameShape},
    ShapeRule{"Rint", SameShape},
    ShapeRule{"Round", SameShape},
    ShapeRule{"Rsqrt", SameShape},
    ShapeRule{"Selu", SameShape},
    ShapeRule{"Sigmoid", SameShape},
    ShapeRule{"Sign", SameShape},
    ShapeRule{"Sin", SameShape},
    ShapeRule{"Sinh", SameShape},
    ShapeRule{"Snapshot", SameShape},
    ShapeRule{"Softplus", SameShape},
    ShapeRule{"Softsign", SameShape},
    ShapeRule{"Sqrt", SameShape},
    ShapeRule{"Square", SameShape},
    ShapeRule{"StopGradient", SameShape},
    ShapeRule{"Tan", SameShape},
    ShapeRule{"Tanh", SameShape},
    ShapeRule{"ZerosLike", SameShape},
    // Two inputs that broadcast.
    ShapeRule{"Add", BroadcastShape},
    ShapeRule{"AddV2", BroadcastShape},
    ShapeRule{"Atan2", BroadcastShape},
    ShapeRule{"BitwiseAnd", BroadcastShape},
    ShapeRule{"BitwiseOr", BroadcastShape},
    ShapeRule{"BitwiseXor", BroadcastShape},
    ShapeRule{"Complex", BroadcastShape},
    ShapeRule{"Div", BroadcastShape},
    ShapeRule{"DivNoNan", BroadcastShape},
    ShapeRule{"Equal", EqualityShape},
    ShapeRule{"FloorDiv", BroadcastShape},
    ShapeRule{"FloorMod", BroadcastShape},
    ShapeRule{"Greater", BroadcastShape},
    ShapeRule{"GreaterEqual", BroadcastShape},
    ShapeRule{"Igamma", BroadcastShape},
    ShapeRule{"IgammaGradA", BroadcastShape},
    ShapeRule{"Igammac", BroadcastShape},
    ShapeRule{"LeftShift", BroadcastShape},
    ShapeRule{"Less", BroadcastShape},
    ShapeRule{"LessEqual", BroadcastShape},
    ShapeRule{"LogicalAnd", BroadcastShape},
    ShapeRule{"LogicalOr", BroadcastShape},
    ShapeRule{"Maximum", BroadcastShape},
    ShapeRule{"Minimum", BroadcastShape},
    ShapeRule{"Mul", BroadcastShape},
    ShapeRule{"MulNoNan", BroadcastShape},
    ShapeRule{"NextAfter", BroadcastShape},
    ShapeRule{"NotEqual", EqualityShape},
    ShapeRule{"Polygamma", BroadcastShape},
    ShapeRule{"Pow", BroadcastShape},
    ShapeRule{"RealDiv", BroadcastShape},
    ShapeRule{"RightShift", BroadcastShape},
    ShapeRule{"SquaredDifference", BroadcastShape},
    ShapeRule{"Sub", BroadcastShape},
    ShapeRule{"TruncateDiv", BroadcastShape},
    ShapeRule{"TruncateMod", BroadcastShape},
    ShapeRule{"Xdivy", BroadcastShape},
    ShapeRule{"Xlog1py", BroadcastShape},
    ShapeRule{"Xlogy", BroadcastShape},
    ShapeRule{"Zeta", BroadcastShape},
    // Inputs of one shape.
    ShapeRule{"ApproximateEqual", MergedShape},
    ShapeRule{"EluGrad", MergedShape},
    ShapeRule{"LeakyReluGrad", MergedShape},
    ShapeRule{"ReciprocalGrad", SameShape},
    ShapeRule{"Relu6Grad", MergedShape},
    ShapeRule{"ReluGrad", MergedShape},
    ShapeRule{"RsqrtGrad", SameShape},
    ShapeRule{"SeluGrad", MergedShape},
    ShapeRule{"SigmoidGrad", SameShape},
    ShapeRule{"Spence", SameShape},
    ShapeRule{"SoftplusGrad", MergedShape},
    ShapeRule{"SoftsignGrad", MergedShape},
    ShapeRule{"SqrtGrad", SameShape},
    ShapeRule{"TanhGrad", SameShape},
    // The rest.
    ShapeRule{"AccumulateNV2", AccumulateShape},
    ShapeRule{"AddN", AddNShape},
    ShapeRule{"Betainc", BetaincShape},
    ShapeRule{"BiasAdd", BiasAddShape},
    ShapeRule{"BiasAddGrad", BiasAddGradShape},
    ShapeRule{"Bitcast", BitcastShape},
    ShapeRule{"BoostedTreesBucketize", SameShapes},
    ShapeRule{"Cross", CrossShape},
    ShapeRule{"EnsureShape", EnsureShapeRule},
    ShapeRule{"Select", SelectShape},
    ShapeRule{"SelectV2", SelectV2Shape},
};

}  // namespace

extern const std::span<const ShapeRule> kElementwiseShapes;
constinit const std::span<const ShapeRule> kElementwiseShapes = kElementwiseRows;

}  // namespace smelt
