// Shapes of quantized tensors: those of the plain op, and scalars for the ends of ranges.
#include <algorithm>

#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

// Outputs after the first are scalars.
void ScalarEnds(ShapeContext& ctx) {
  for (int i = 1; i < ctx.node().num_outputs(); ++i) ctx.set_output(i, Shape());
}

Status QuantizedSame(ShapeContext& ctx) {
  ScalarEnds(ctx);
  return SameShape(ctx);
}

Status QuantizedBroadcast(ShapeContext& ctx) {
  ScalarEnds(ctx);
  ASSIGN_OR_RETURN(PartialShape out, BroadcastShapes(ctx.input(0), ctx.input(1)));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

template <int kRank>
Status QuantizedOfRank(ShapeContext& ctx) {
  ctx.set_output(0, PartialShape::UnknownOfRank(kRank));
  ScalarEnds(ctx);
  return OkStatus();
}

Status QuantizedMatMulShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(const PartialShape a, WithRank(ctx.input(0), 2));
  ASSIGN_OR_RETURN(const PartialShape b, WithRank(ctx.input(1), 2));
  const int row = ctx.node().Bool("transpose_a") ? 1 : 0;
  const int column = ctx.node().Bool("transpose_b") ? 0 : 1;
  RETURN_IF_ERROR(MergeDims(DimOf(a, 1 - row), DimOf(b, 1 - column)).status());
  ctx.set_output(0, PartialShape::Of({DimOf(a, row), DimOf(b, column)}));
  ScalarEnds(ctx);
  return OkStatus();
}

// The ends of the range are vectors with one element for each slice along the axis; scalars without
// an axis and for a single slice.
Status QuantizeShape(ShapeContext& ctx) {
  const int64_t axis = ctx.node().Int("axis", -1);
  const PartialShape& in = ctx.input(0);
  PartialShape ends = Shape();
  if (axis >= 0) {
    const bool inside = in.known_rank() && axis < in.rank();
    const int64_t slices = inside ? in[static_cast<int>(axis)] : kUnknownDim;
    if (slices != 1) ends = slices == kUnknownDim ? PartialShape() : VectorShape(slices);
  }
  for (int i = 1; i < ctx.node().num_outputs(); ++i) ctx.set_output(i, ends);
  return SameShape(ctx);
}

Status QuantizedReshapeShape(ShapeContext& ctx) {
  ScalarEnds(ctx);
  PartialShape out = ctx.constant_as_shape(1);
  if (out.known_rank() && !out.fully_known()) out = PartialShape::UnknownOfRank(out.rank());
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status QuantizedResizeShape(ShapeContext& ctx) {
  ScalarEnds(ctx);
  ASSIGN_OR_RETURN(PartialShape out, WithRank(ctx.input(0), 4));
  const PartialShape size = ctx.constant_as_shape(1);
  for (int i = 0; i < 2; ++i) out.Set(1 + i, size.rank() == 2 ? size[i] : kUnknownDim);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status QuantizedConcatShape(ShapeContext& ctx) {
  ScalarEnds(ctx);
  const auto [first, n] = InputRange(ctx.node(), "values");
  for (int i = first; i < first + n; ++i) {
    if (!ctx.input(i).known_rank()) continue;
    ctx.set_output(0, PartialShape::UnknownOfRank(ctx.input(i).rank()));
    break;
  }
  return OkStatus();
}

Status FakeGradientShape(ShapeContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  for (int i = 1; i < ctx.node().num_outputs(); ++i) ctx.set_output(i, ctx.input(2));
  return OkStatus();
}

Status UniformConvShape(ShapeContext& ctx) {
  const int rank = std::max(ctx.input(0).rank(), ctx.input(1).rank());
  if (rank >= 0) ctx.set_output(0, PartialShape::UnknownOfRank(rank));
  return OkStatus();
}

Status SameRankShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  if (in.known_rank()) ctx.set_output(0, PartialShape::UnknownOfRank(in.rank()));
  return OkStatus();
}

// The input's shape with k elements along reduction_dimension.
Status ApproxTopKShape(ShapeContext& ctx) {
  PartialShape out = ctx.input(0);
  if (!out.known_rank()) return OkStatus();
  ASSIGN_OR_RETURN(const int dim, WrapAxis(ctx.node().Int("reduction_dimension", -1), out.rank()));
  out.Set(dim, ctx.node().Int("k"));
  ctx.set_output(0, out);
  ctx.set_output(1, out);
  return OkStatus();
}

// The sum of the layer's result and an addend, where it has one.
Status SetInt8Output(ShapeContext& ctx, PartialShape out) {
  if (ctx.num_inputs() > 3) {
    ASSIGN_OR_RETURN(out, BroadcastShapes(out, ctx.input(3)));
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// Images are [batch, height, width, channels], filters [height, width, in, out].
Status Int8ConvShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out, WithRank(ctx.input(0), 4));
  ASSIGN_OR_RETURN(const PartialShape filter, WithRank(ctx.input(1), 4));
  const std::vector<int64_t> strides = ctx.node().Ints("strides");
  const std::vector<int64_t> dilations = ctx.node().Ints("dilations");
  const std::vector<int64_t> padding = ctx.node().Ints("padding");
  if (strides.size() != 2 || dilations.size() != 2 || padding.size() != 4) return OkStatus();
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<size_t>(i);
    XlaWindow w;
    w.stride = strides[at];
    w.dilation = dilations[at];
    w.low = padding[2 * at];
    w.high = padding[2 * at + 1];
    out.Set(1 + i, XlaWindowedDim(out[1 + i], filter[i], w));
  }
  out.Set(3, filter[3]);
  return SetInt8Output(ctx, std::move(out));
}

// x's last dimensions are summed over, the weights' first ones or, transposed, last ones.
Status Int8MatMulShape(ShapeContext& ctx) {
  const PartialShape &x = ctx.input(0), &w = ctx.input(1);
  const int64_t summed = ctx.node().Int("contracted", 1);
  if (!x.known_rank() || !w.known_rank() || summed < 1 || x.rank() <= summed ||
      w.rank() <= summed) {
    return OkStatus();
  }
  const int kept = x.rank() - static_cast<int>(summed);
  const int channels = w.rank() - static_cast<int>(summed);
  const bool transposed = ctx.node().Bool("transpose_b");
  for (int i = 0; i < summed; ++i) {
    RETURN_IF_ERROR(MergeDims(x[kept + i], w[(transposed ? channels : 0) + i]).status());
  }
  const int first = transposed ? 0 : static_cast<int>(summed);
  return SetInt8Output(ctx,
                       Concatenate(SubShape(x, 0, kept), SubShape(w, first, first + channels)));
}

constexpr ShapeRule kQuantizedRules[] = {
    {"_ByteTable", SameShape},
    {"_Int8Conv2D", Int8ConvShape},
    {"_Int8MatMul", Int8MatMulShape},
    {"_Int8Quantize", SameShape},
    {"_Int8Dequantize", SameShape},
    {"ApproxTopK", ApproxTopKShape},
    {"Conv", SameRankShape},
    {"BatchNormWithGlobalNormalization", SameShape},
    {"QuantizeV2", QuantizeShape},
    {"Dequantize", SameShape},
    {"QuantizeDownAndShrinkRange", QuantizedSame},
    {"Requantize", QuantizedSame},
    {"RequantizationRange", ScalarShapes},
    {"QuantizedAdd", QuantizedBroadcast},
    {"QuantizedMul", QuantizedBroadcast},
    {"QuantizedBiasAdd", QuantizedSame},
    {"QuantizedMatMul", QuantizedMatMulShape},
    {"QuantizedRelu", QuantizedSame},
    {"QuantizedRelu6", QuantizedSame},
    {"QuantizedReshape", QuantizedReshapeShape},
    {"QuantizedResizeBilinear", QuantizedResizeShape},
    {"QuantizedConcat", QuantizedConcatShape},
    {"QuantizedMaxPool", QuantizedOfRank<4>},
    {"QuantizedAvgPool", QuantizedOfRank<4>},
    {"QuantizedConv2D", QuantizedOfRank<4>},
    {"QuantizedInstanceNorm", QuantizedSame},
    {"QuantizedBatchNormWithGlobalNormalization", QuantizedSame},
    {"QuantizeAndDequantize", SameShape},
    {"QuantizeAndDequantizeV4Grad", FakeGradientShape},
    {"FakeQuantWithMinMaxArgsGradient", SameShape},
    {"FakeQuantWithMinMaxVarsGradient", FakeGradientShape},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", FakeGradientShape},
    {"UniformQuantize", SameShape},
    {"UniformDequantize", SameShape},
    {"UniformRequantize", SameShape},
    {"UniformQuantizedAdd", BroadcastShape},
    {"UniformQuantizedClipByValue", SameShape},
    {"UniformQuantizedDot", QuantizedMatMulShape},
    {"UniformQuantizedDotHybrid", QuantizedMatMulShape},
    {"UniformQuantizedConvolution", UniformConvShape},
    {"UniformQuantizedConvolutionHybrid", UniformConvShape},
};

}  // namespace

extern constinit const std::span<const ShapeRule> kQuantizedShapes = kQuantizedRules;

}  // namespace smelt
