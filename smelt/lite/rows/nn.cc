// Convolutions, pools, normalizations, images.
#include <algorithm>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

constexpr DtypeSet kFloatOnly = Types(Dtype::kFloat);

Status CheckFormat(const Node& n, absl::string_view wanted) {
  const std::string format = n.String("data_format", std::string(wanted));
  if (format == wanted) return OkStatus();
  return Unimplemented("its data format is ", format, ", not ", wanted);
}

// The input, padded where the node says how much by explicit numbers; `padding` is what is left.
StatusOr<Endpoint> PaddedInput(const Node& n, Endpoint input, Legalizer& l, std::string* padding) {
  *padding = n.String("padding");
  if (*padding != "EXPLICIT") return input;
  *padding = "VALID";
  const std::vector<int64_t> pads = n.Ints("explicit_paddings");
  const PartialShape from = l.shape(input);
  if (std::ranges::all_of(pads, [](int64_t p) { return p == 0; })) return input;
  ASSIGN_OR_RETURN(Tensor value,
                   Tensor::Make(Dtype::kInt32, Shape({static_cast<int64_t>(pads.size() / 2), 2})));
  std::copy(pads.begin(), pads.end(), value.data<int32_t>());
  std::vector<int64_t> dims;
  for (int i = 0; i < from.rank(); ++i) {
    const auto p = static_cast<size_t>(2 * i);
    dims.push_back(from[i] < 0 ? -1 : from[i] + pads[p] + pads[p + 1]);
  }
  return l.Add("tfl.pad", {input, l.Const(value)}, {}, {l.type(input), PartialShape::Of(dims)});
}

// The weights in the order that the operator wants: of a constant at once.
StatusOr<Endpoint> InOrder(Endpoint weights, std::vector<int64_t> order, Legalizer& l) {
  if (const auto value = l.Constant(weights)) {
    ASSIGN_OR_RETURN(const Tensor moved, Transposed(*value, order));
    return l.Const(moved);
  }
  const PartialShape from = l.shape(weights);
  std::vector<int64_t> dims;
  for (const int64_t o : order) dims.push_back(from.known_rank() ? from[static_cast<int>(o)] : -1);
  return l.Add("tfl.transpose", {weights, l.Ints(order)}, {},
               {l.type(weights), PartialShape::Of(dims)});
}

StatusOr<Endpoint> Zeros(int64_t count, Legalizer& l) {
  ASSIGN_OR_RETURN(const Tensor zeros, Tensor::Zeros(Dtype::kFloat, Shape({count})));
  return l.Const(zeros);
}

LiteEndpoints Conv2D(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  RETURN_IF_ERROR(CheckFormat(n, "NHWC"));
  const PartialShape filter = l.shape(n.input(1));
  if (filter.rank() != 4 || filter[3] < 0) return Unimplemented("its filter's shape is not known");
  std::string padding;
  ASSIGN_OR_RETURN(const Endpoint input, PaddedInput(n, n.input(0), l, &padding));
  ASSIGN_OR_RETURN(const Endpoint weights, InOrder(n.input(1), {3, 0, 1, 2}, l));
  ASSIGN_OR_RETURN(const Endpoint bias, Zeros(filter[3], l));
  const std::vector<int64_t> strides = n.Ints("strides"), dilations = n.Ints("dilations");
  return One(l.Add("tfl.conv_2d", {input, weights, bias},
                   Options({{"padding", padding},
                            {"stride_h", strides[1]},
                            {"stride_w", strides[2]},
                            {"dilation_h_factor", dilations[1]},
                            {"dilation_w_factor", dilations[2]}}),
                   l.OutputOf(n)));
}

LiteEndpoints DepthwiseConv2D(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  RETURN_IF_ERROR(CheckFormat(n, "NHWC"));
  const PartialShape filter = l.shape(n.input(1));
  const bool known =
      filter.rank() == 4 && filter[0] >= 0 && filter[1] >= 0 && filter[2] >= 0 && filter[3] >= 0;
  if (!known) return Unimplemented("its filter's shape is not known");
  const int64_t channels = filter[2] * filter[3];
  const std::vector<int64_t> sizes = {1, filter[0], filter[1], channels};
  std::string padding;
  ASSIGN_OR_RETURN(const Endpoint input, PaddedInput(n, n.input(0), l, &padding));
  Endpoint weights;
  if (const auto value = l.Constant(n.input(1))) {
    weights = l.Const(value->WithShape(Shape(sizes)));
  } else {
    ASSIGN_OR_RETURN(
        weights, l.Add("tfl.reshape", {n.input(1), l.Ints(sizes)}, Options({{"new_shape", sizes}}),
                       {Dtype::kFloat, PartialShape::Of(sizes)}));
  }
  ASSIGN_OR_RETURN(const Endpoint bias, Zeros(channels, l));
  const std::vector<int64_t> strides = n.Ints("strides"), dilations = n.Ints("dilations");
  return One(l.Add("tfl.depthwise_conv_2d", {input, weights, bias},
                   Options({{"padding", padding},
                            {"stride_h", strides[1]},
                            {"stride_w", strides[2]},
                            {"depth_multiplier", filter[3]},
                            {"dilation_h_factor", dilations[1]},
                            {"dilation_w_factor", dilations[2]}}),
                   l.OutputOf(n)));
}

LiteEndpoints TransposeConv(Node& n, Legalizer& l) {
  if (n.input_types[2] != Dtype::kFloat) return Unimplemented("its operator takes float alone");
  RETURN_IF_ERROR(CheckFormat(n, "NHWC"));
  if (n.String("padding") == "EXPLICIT") return Unimplemented("its padding is explicit");
  const std::vector<int64_t> strides = n.Ints("strides"), dilations = n.Ints("dilations");
  if (dilations[1] != 1 || dilations[2] != 1) return Unimplemented("it is dilated");
  ASSIGN_OR_RETURN(const Endpoint sizes, AsInt32(n.input(0), l));
  ASSIGN_OR_RETURN(const Endpoint weights, InOrder(n.input(1), {2, 0, 1, 3}, l));
  return One(l.Add(
      "tfl.transpose_conv", {sizes, weights, n.input(2)},
      Options(
          {{"padding", n.String("padding")}, {"stride_h", strides[1]}, {"stride_w", strides[2]}}),
      l.OutputOf(n)));
}

AttrMap Options3D(const Node& n) {
  const std::vector<int64_t> strides = n.Ints("strides"), dilations = n.Ints("dilations");
  return Options({{"padding", n.String("padding")},
                  {"stride_d", strides[1]},
                  {"stride_h", strides[2]},
                  {"stride_w", strides[3]},
                  {"dilation_d_factor", dilations[1]},
                  {"dilation_h_factor", dilations[2]},
                  {"dilation_w_factor", dilations[3]}});
}

LiteEndpoints Conv3D(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  RETURN_IF_ERROR(CheckFormat(n, "NDHWC"));
  return One(
      l.Add("tfl.conv_3d", {n.input(0), n.input(1), l.NoValue()}, Options3D(n), l.OutputOf(n)));
}

LiteEndpoints TransposeConv3D(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckFormat(n, "NDHWC"));
  ASSIGN_OR_RETURN(const Endpoint sizes, AsInt32(n.input(0), l));
  return One(l.Add("tfl.conv_3d_transpose", {sizes, n.input(1), n.input(2), l.NoValue()},
                   Options3D(n), l.OutputOf(n)));
}

LiteEndpoints Pool(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  RETURN_IF_ERROR(CheckFormat(n, "NHWC"));
  const std::vector<int64_t> window = n.Ints("ksize"), strides = n.Ints("strides");
  if (window[0] != 1 || window[3] != 1 || strides[0] != 1 || strides[3] != 1) {
    return Unimplemented("its window reaches over images or channels");
  }
  if (n.String("padding") == "EXPLICIT") return Unimplemented("its padding is explicit");
  return One(l.Add(l.row().lite, {n.input(0)},
                   Options({{"padding", n.String("padding")},
                            {"filter_height", window[1]},
                            {"filter_width", window[2]},
                            {"stride_h", strides[1]},
                            {"stride_w", strides[2]}}),
                   l.OutputOf(n)));
}

// y = x * scale + shift, with scale = gamma / sqrt(variance + epsilon), shift = beta - mean *
// scale.
LiteEndpoints BatchNorm(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  if (n.Bool("is_training", true)) return Unimplemented("it is training");
  const bool last = n.String("data_format") == "NHWC" || n.String("data_format") == "NDHWC";
  if (!last) return Unimplemented("channels come second");
  for (int i = 1; i < n.num_outputs(); ++i) {
    if (n.NumUses(i) > 0) return Unimplemented("its statistics are read");
  }
  const Endpoint gamma = n.input(1), beta = n.input(2), mean = n.input(3), variance = n.input(4);
  const auto g = l.Constant(gamma), b = l.Constant(beta), m = l.Constant(mean),
             v = l.Constant(variance);
  const float epsilon = n.Float("epsilon", 1e-4f);
  Endpoint scale, shift;
  if (g && b && m && v) {
    AttrMap attrs;
    attrs.Set("T", Dtype::kFloat);
    ASSIGN_OR_RETURN(const Tensor sum, Binary("AddV2", *v, Tensor::Scalar(epsilon)));
    ASSIGN_OR_RETURN(const auto root, Evaluate("Rsqrt", {sum}, attrs));
    ASSIGN_OR_RETURN(const Tensor factor, Binary("Mul", root[0], *g));
    ASSIGN_OR_RETURN(const Tensor moved, Binary("Mul", *m, factor));
    ASSIGN_OR_RETURN(const Tensor rest, Binary("Sub", *b, moved));
    scale = l.Const(factor);
    shift = l.Const(rest);
  } else {
    const LiteOutput channels = {Dtype::kFloat, l.shape(gamma)};
    ASSIGN_OR_RETURN(const Endpoint sum,
                     l.Add("tfl.add", {variance, l.Floats(epsilon)}, {}, channels));
    ASSIGN_OR_RETURN(const Endpoint root, l.Add("tfl.rsqrt", {sum}, {}, channels));
    ASSIGN_OR_RETURN(scale, l.Add("tfl.mul", {root, gamma}, {}, channels));
    ASSIGN_OR_RETURN(const Endpoint moved, l.Add("tfl.mul", {mean, scale}, {}, channels));
    ASSIGN_OR_RETURN(shift, l.Add("tfl.sub", {beta, moved}, {}, channels));
  }
  ASSIGN_OR_RETURN(const Endpoint product,
                   l.Add("tfl.mul", {n.input(0), scale}, {}, l.OutputOf(n)));
  return One(l.Add("tfl.add", {product, shift}, {}, l.OutputOf(n)));
}

LiteEndpoints Softmax(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  return One(l.Add("tfl.softmax", Inputs(n), Options({{"beta", 1.0f}}), l.OutputOf(n)));
}

LiteEndpoints LogSoftmax(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  return One(l.Add("tfl.log_softmax", Inputs(n), {}, l.OutputOf(n)));
}

LiteEndpoints LocalResponse(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  return One(l.Add("tfl.local_response_normalization", Inputs(n),
                   Options({{"radius", n.Int("depth_radius", 5)},
                            {"bias", n.Float("bias", 1)},
                            {"alpha", n.Float("alpha", 1)},
                            {"beta", n.Float("beta", 0.5f)}}),
                   l.OutputOf(n)));
}

LiteEndpoints Resize(Node& n, Legalizer& l) {
  const bool bilinear = l.row().lite == OpName("tfl.resize_bilinear");
  RETURN_IF_ERROR(CheckType(
      n, bilinear ? kFloatOnly : Types(Dtype::kFloat, Dtype::kUint8, Dtype::kInt8, Dtype::kInt16)));
  ASSIGN_OR_RETURN(const Endpoint size, AsInt32(n.input(1), l));
  return One(l.Add(l.row().lite, {n.input(0), size},
                   Options({{"align_corners", n.Bool("align_corners")},
                            {"half_pixel_centers", n.Bool("half_pixel_centers")}}),
                   l.OutputOf(n)));
}

constexpr ExportRow kNnRows[] = {
    {"Conv2D", Conv2D},
    {"DepthwiseConv2dNative", DepthwiseConv2D},
    {"Conv2DBackpropInput", TransposeConv},
    {"Conv3D", Conv3D},
    {"Conv3DBackpropInputV2", TransposeConv3D},
    {"MaxPool", Pool, "tfl.max_pool_2d"},
    {"AvgPool", Pool, "tfl.average_pool_2d"},
    {"FusedBatchNorm", BatchNorm},
    {"FusedBatchNormV2", BatchNorm},
    {"FusedBatchNormV3", BatchNorm},
    {"Softmax", Softmax},
    {"LogSoftmax", LogSoftmax},
    {"LRN", LocalResponse},
    {"ResizeBilinear", Resize, "tfl.resize_bilinear"},
    {"ResizeNearestNeighbor", Resize, "tfl.resize_nearest_neighbor"},
};

}  // namespace

std::span<const ExportRow> NnExport() { return kNnRows; }

}  // namespace smelt
