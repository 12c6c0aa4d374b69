// Operators of TensorFlow Lite that have kernels (graph/ops/lite_ops.txt), most on quantized
// tensors. What does not fit leaves sizes unknown: kernels say what is wrong.
#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

// The places of a window of `size` along `in`.
int64_t LitePlaces(int64_t in, int64_t size, int64_t stride, int64_t dilation, bool same) {
  if (in < 0 || stride < 1 || dilation < 1) return kUnknownDim;
  if (same) return in / stride + (in % stride != 0 ? 1 : 0);
  if (size < 1 || (size - 1) > (int64_t{1} << 31) / dilation) return kUnknownDim;
  const int64_t reach = (size - 1) * dilation + 1;
  return in < reach ? kUnknownDim : (in - reach) / stride + 1;
}

// Of an image under windows of these sizes, with so many channels.
PartialShape LiteWindows(const Node& n, const PartialShape& in, int64_t height, int64_t width,
                         int64_t channels) {
  if (in.rank() != 4) return PartialShape::UnknownOfRank(4);
  const bool same = n.String("padding", "SAME") == "SAME";
  return PartialShape::Of(
      {DimOf(in, 0),
       LitePlaces(DimOf(in, 1), height, n.Int("stride_h"), n.Int("dilation_h_factor", 1), same),
       LitePlaces(DimOf(in, 2), width, n.Int("stride_w"), n.Int("dilation_w_factor", 1), same),
       channels});
}

template <int kUnits>  // the dimension of the filter that counts channels
Status LiteConvShape(ShapeContext& ctx) {
  const PartialShape &in = ctx.input(0), &filter = ctx.input(1);
  if (filter.rank() != 4) {
    ctx.set_output(0, PartialShape::UnknownOfRank(4));
    return OkStatus();
  }
  ctx.set_output(
      0, LiteWindows(ctx.node(), in, DimOf(filter, 1), DimOf(filter, 2), DimOf(filter, kUnits)));
  return OkStatus();
}

Status LitePoolShape(ShapeContext& ctx) {
  const Node& n = ctx.node();
  const PartialShape& in = ctx.input(0);
  const int64_t channels = in.rank() != 4 ? kUnknownDim : DimOf(in, 3);
  ctx.set_output(0, LiteWindows(n, in, n.Int("filter_height"), n.Int("filter_width"), channels));
  return OkStatus();
}

Status LiteDenseShape(ShapeContext& ctx) {
  const PartialShape &in = ctx.input(0), &weights = ctx.input(1);
  const bool known = weights.rank() == 2;
  const int64_t units = known ? DimOf(weights, 0) : kUnknownDim;
  const int64_t depth = known ? DimOf(weights, 1) : kUnknownDim;
  if (ctx.node().Bool("keep_num_dims") && in.rank() != 0) {
    if (!in.known_rank()) {
      ctx.set_output(0, PartialShape::Unknown());
      return OkStatus();
    }
    ctx.set_output(0, Concatenate(SubShape(in, 0, in.rank() - 1), VectorShape(units)));
    return OkStatus();
  }
  const int64_t numbers = NumElements(in);
  const bool fits = numbers >= 0 && depth > 0 && numbers % depth == 0;
  ctx.set_output(0, PartialShape::Of({fits ? numbers / depth : kUnknownDim, units}));
  return OkStatus();
}

Status LiteReductionShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  const auto axes = IntConstants(ctx, 1);
  const bool keep = ctx.node().Bool("keep_dims");
  ctx.set_output(0, PartialShape::Unknown());
  if (!in.known_rank() || !axes) return OkStatus();
  std::vector<bool> gone(static_cast<size_t>(in.rank()));
  for (int64_t axis : *axes) {
    if (axis < 0) axis += in.rank();
    if (axis < 0 || axis >= in.rank()) return OkStatus();
    gone[static_cast<size_t>(axis)] = true;
  }
  std::vector<int64_t> sizes;
  for (int i = 0; i < in.rank(); ++i) {
    if (!gone[static_cast<size_t>(i)]) {
      sizes.push_back(DimOf(in, i));
    } else if (keep) {
      sizes.push_back(1);
    }
  }
  ctx.set_output(0, PartialShape::Of(sizes));
  return OkStatus();
}

Status LiteTransposedShape(ShapeContext& ctx) {
  PartialShape out = ctx.constant_as_shape(0);
  if (out.rank() != 4) out = PartialShape::UnknownOfRank(4);
  const PartialShape &filter = ctx.input(1), &in = ctx.input(2);
  if (out[0] < 0 && in.rank() == 4) out.Set(0, in[0]);
  if (out[3] < 0 && filter.rank() == 4) out.Set(3, filter[0]);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// The kernel words options that no detector has.
Status LiteDetectionShape(ShapeContext& ctx) {
  const int64_t most = ctx.node().Int("max_detections");
  const int64_t labels = ctx.node().Int("max_classes_per_detection");
  const int64_t rows = most < 0 || labels < 1 ? kUnknownDim : MulDims(most, labels);
  ctx.set_output(0, PartialShape::Of({1, rows, 4}));
  ctx.set_output(1, PartialShape::Of({1, rows}));
  ctx.set_output(2, PartialShape::Of({1, rows}));
  ctx.set_output(3, VectorShape(1));
  return OkStatus();
}

// Files may leave inputs out, which kernels word.
template <int kInputs, Status (*kInfer)(ShapeContext&)>
Status OfInputs(ShapeContext& ctx) {
  return ctx.node().num_inputs() < kInputs ? NoShapes(ctx) : kInfer(ctx);
}

constexpr ShapeRule kLiteRows[] = {
    ShapeRule{"_LiteDetectionPostProcess", LiteDetectionShape},
    ShapeRule{"tfl.add", OfInputs<2, BroadcastShape>},
    ShapeRule{"tfl.average_pool_2d", OfInputs<1, LitePoolShape>},
    ShapeRule{"tfl.cast", OfInputs<1, SameShape>},
    ShapeRule{"tfl.conv_2d", OfInputs<2, LiteConvShape<0>>},
    ShapeRule{"tfl.depthwise_conv_2d", OfInputs<2, LiteConvShape<3>>},
    ShapeRule{"tfl.dequantize", OfInputs<1, SameShape>},
    ShapeRule{"tfl.fully_connected", OfInputs<2, LiteDenseShape>},
    ShapeRule{"tfl.hard_swish", OfInputs<1, SameShape>},
    ShapeRule{"tfl.logistic", OfInputs<1, SameShape>},
    ShapeRule{"tfl.max_pool_2d", OfInputs<1, LitePoolShape>},
    ShapeRule{"tfl.mean", OfInputs<2, LiteReductionShape>},
    ShapeRule{"tfl.mul", OfInputs<2, BroadcastShape>},
    ShapeRule{"tfl.quantize", OfInputs<1, SameShape>},
    ShapeRule{"tfl.relu", OfInputs<1, SameShape>},
    ShapeRule{"tfl.relu6", OfInputs<1, SameShape>},
    ShapeRule{"tfl.softmax", OfInputs<1, SameShape>},
    ShapeRule{"tfl.squared_difference", OfInputs<2, BroadcastShape>},
    ShapeRule{"tfl.sub", OfInputs<2, BroadcastShape>},
    ShapeRule{"tfl.sum", OfInputs<2, LiteReductionShape>},
    ShapeRule{"tfl.tanh", OfInputs<1, SameShape>},
    ShapeRule{"tfl.transpose_conv", OfInputs<3, LiteTransposedShape>},
};

}  // namespace

extern const std::span<const ShapeRule> kLiteShapes;
constinit const std::span<const ShapeRule> kLiteShapes = kLiteRows;

}  // namespace smelt
