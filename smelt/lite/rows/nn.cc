// Convolutions, pools, normalizations, images.
#include <algorithm>
#include <limits>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

constexpr DtypeSet kFloatOnly = Types(Dtype::kFloat);

StatusOr<Endpoint> Transposition(Endpoint e, const std::vector<int64_t>& order, Legalizer& l) {
  const PartialShape from = l.shape(e);
  std::vector<int64_t> dims;
  for (const int64_t o : order) dims.push_back(from.known_rank() ? from[static_cast<int>(o)] : -1);
  return l.Add("tfl.transpose", {e, l.Ints(order)}, {}, {l.type(e), PartialShape::Of(dims)});
}

// A node of images whose channels may come second: operators want them last.
class ImageOp {
 public:
  explicit ImageOp(const Node& n) : n_(n), second_(n.String("data_format", "NHWC") == "NCHW") {}

  bool second() const { return second_; }
  bool known() const { return second_ || n_.String("data_format", "NHWC") == "NHWC"; }
  // An attribute of four numbers in the order of NHWC.
  std::vector<int64_t> Ints(absl::string_view name) const {
    const std::vector<int64_t> in = n_.Ints(name);
    if (!second_ || in.size() != 4) return in;
    return {in[0], in[2], in[3], in[1]};
  }
  // Pairs of numbers.
  std::vector<int64_t> Pads(absl::string_view name) const {
    const std::vector<int64_t> in = n_.Ints(name);
    if (!second_ || in.size() != 8) return in;
    return {in[0], in[1], in[4], in[5], in[6], in[7], in[2], in[3]};
  }
  StatusOr<Endpoint> Input(Endpoint e, Legalizer& l) const {
    return second_ ? Transposition(e, {0, 2, 3, 1}, l) : StatusOr<Endpoint>(e);
  }
  LiteOutput Output(const Legalizer& l) const {
    LiteOutput out = l.OutputOf(n_);
    if (second_ && out.shape.rank() == 4) {
      out.shape = PartialShape::Of({out.shape[0], out.shape[2], out.shape[3], out.shape[1]});
    }
    return out;
  }
  LiteEndpoints Result(StatusOr<Endpoint> e, Legalizer& l) const {
    RETURN_IF_ERROR(e.status());
    return One(second_ ? Transposition(*e, {0, 3, 1, 2}, l) : e);
  }

 private:
  const Node& n_;
  const bool second_;
};

Status CheckFormat(const Node& n, absl::string_view wanted) {
  const std::string format = n.String("data_format", std::string(wanted));
  if (format == wanted) return OkStatus();
  return Unimplemented("its data format is ", format, ", not ", wanted);
}

// Kernels move their window over images' rows and columns alone.
Status CheckWindow(const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations) {
  for (const auto* steps : {&strides, &dilations}) {
    if (steps->size() < 4)
      return Unimplemented("its strides or dilations are not for each dimension");
    if (steps->front() == 1 && steps->back() == 1) continue;
    return Unimplemented("its ", steps == &strides ? "strides" : "dilations",
                         " are over images or channels");
  }
  return OkStatus();
}

// The input, padded where the node says how much by explicit numbers: by zeros, or the number that
// is given; `padding` is what is left.
StatusOr<Endpoint> PaddedInput(const Node& n, Endpoint input, Legalizer& l, std::string* padding,
                               std::optional<float> by = std::nullopt) {
  const ImageOp image(n);
  ASSIGN_OR_RETURN(input, image.Input(input, l));
  *padding = n.String("padding");
  if (*padding != "EXPLICIT") return input;
  *padding = "VALID";
  const std::vector<int64_t> pads = image.Pads("explicit_paddings");
  const PartialShape from = l.shape(input);
  if (std::ranges::all_of(pads, [](int64_t p) { return p == 0; })) return input;
  std::vector<int64_t> dims;
  for (int i = 0; i < from.rank(); ++i) {
    const auto p = static_cast<size_t>(2 * i);
    dims.push_back(from[i] < 0 ? -1 : from[i] + pads[p] + pads[p + 1]);
  }
  const LiteOutput out = {l.type(input), PartialShape::Of(dims)};
  if (by) return l.Add("tfl.padv2", {input, l.IntPairs(pads), l.Floats(*by)}, {}, out);
  return l.Add("tfl.pad", {input, l.IntPairs(pads)}, {}, out);
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
  const ImageOp image(n);
  if (!image.known()) return Unimplemented("its data format is not known");
  const PartialShape filter = l.shape(n.input(1));
  if (filter.rank() != 4 || filter[3] < 0) return Unimplemented("its filter's shape is not known");
  const std::vector<int64_t> strides = image.Ints("strides"), dilations = image.Ints("dilations");
  RETURN_IF_ERROR(CheckWindow(strides, dilations));
  std::string padding;
  ASSIGN_OR_RETURN(const Endpoint input, PaddedInput(n, n.input(0), l, &padding));
  ASSIGN_OR_RETURN(const Endpoint weights, InOrder(n.input(1), {3, 0, 1, 2}, l));
  ASSIGN_OR_RETURN(const Endpoint bias, Zeros(filter[3], l));
  return image.Result(l.Add("tfl.conv_2d", {input, weights, bias},
                            Options({{"padding", padding},
                                     {"stride_h", strides[1]},
                                     {"stride_w", strides[2]},
                                     {"dilation_h_factor", dilations[1]},
                                     {"dilation_w_factor", dilations[2]}}),
                            image.Output(l)),
                      l);
}

LiteEndpoints DepthwiseConv2D(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  const ImageOp image(n);
  if (!image.known()) return Unimplemented("its data format is not known");
  const PartialShape filter = l.shape(n.input(1));
  const bool known =
      filter.rank() == 4 && filter[0] >= 0 && filter[1] >= 0 && filter[2] >= 0 && filter[3] >= 0;
  if (!known) return Unimplemented("its filter's shape is not known");
  const std::vector<int64_t> strides = image.Ints("strides"), dilations = image.Ints("dilations");
  RETURN_IF_ERROR(CheckWindow(strides, dilations));
  const int64_t channels = filter[2] * filter[3];
  if (channels == 0) return Unimplemented("its filter is empty");
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
  return image.Result(l.Add("tfl.depthwise_conv_2d", {input, weights, bias},
                            Options({{"padding", padding},
                                     {"stride_h", strides[1]},
                                     {"stride_w", strides[2]},
                                     {"depth_multiplier", filter[3]},
                                     {"dilation_h_factor", dilations[1]},
                                     {"dilation_w_factor", dilations[2]}}),
                            image.Output(l)),
                      l);
}

// Ops take height and width alone, too.
StatusOr<Endpoint> WithBatchAndChannels(const Node& n, Endpoint sizes, Legalizer& l) {
  const PartialShape filter = l.shape(n.input(1));
  if (filter.rank() != 4 || filter[2] < 0) return Unimplemented("its filter has no known sizes");
  ASSIGN_OR_RETURN(const Endpoint batch, BatchOf(n.input(2), l));
  const Endpoint channels = l.Ints(std::vector<int64_t>{filter[2]});
  return l.Add("tfl.concatenation", {batch, sizes, channels}, Options({{"axis", int64_t{0}}}),
               {Dtype::kInt32, PartialShape::Of({4})});
}

LiteEndpoints TransposeConv(Node& n, Legalizer& l) {
  if (n.input_types[2] != Dtype::kFloat) return Unimplemented("its operator takes float alone");
  const ImageOp image(n);
  if (!image.known()) return Unimplemented("its data format is not known");
  if (n.String("padding") == "EXPLICIT") return Unimplemented("its padding is explicit");
  const std::vector<int64_t> strides = image.Ints("strides"), dilations = image.Ints("dilations");
  RETURN_IF_ERROR(CheckWindow(strides, dilations));
  if (dilations[1] != 1 || dilations[2] != 1) return Unimplemented("it is dilated");
  ASSIGN_OR_RETURN(Endpoint sizes, AsInt32(n.input(0), l));
  if (image.second() && l.shape(sizes) == PartialShape::Of({4})) {
    const std::vector<int64_t> order = {0, 2, 3, 1};
    if (const auto given = l.Integers(sizes)) {
      sizes = l.Ints(std::vector<int64_t>{(*given)[0], (*given)[2], (*given)[3], (*given)[1]});
    } else {
      ASSIGN_OR_RETURN(sizes,
                       l.Add("tfl.gather", {sizes, l.Ints(order)}, Options({{"axis", int64_t{0}}}),
                             {Dtype::kInt32, PartialShape::Of({4})}));
    }
  }
  if (l.shape(sizes) == PartialShape::Of({2})) {
    ASSIGN_OR_RETURN(sizes, WithBatchAndChannels(n, sizes, l));
  }
  ASSIGN_OR_RETURN(const Endpoint weights, InOrder(n.input(1), {2, 0, 1, 3}, l));
  ASSIGN_OR_RETURN(const Endpoint input, image.Input(n.input(2), l));
  return image.Result(l.Add("tfl.transpose_conv", {sizes, weights, input},
                            Options({{"padding", n.String("padding")},
                                     {"stride_h", strides[1]},
                                     {"stride_w", strides[2]}}),
                            image.Output(l)),
                      l);
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
  RETURN_IF_ERROR(CheckWindow(n.Ints("strides"), n.Ints("dilations")));
  return One(
      l.Add("tfl.conv_3d", {n.input(0), n.input(1), l.NoValue()}, Options3D(n), l.OutputOf(n)));
}

LiteEndpoints TransposeConv3D(Node& n, Legalizer& l) {
  if (n.input_types[2] != Dtype::kFloat) return Unimplemented("its operator takes float alone");
  RETURN_IF_ERROR(CheckFormat(n, "NDHWC"));
  RETURN_IF_ERROR(CheckWindow(n.Ints("strides"), n.Ints("dilations")));
  const PartialShape weights = l.shape(n.input(1)), input = l.shape(n.input(2));
  if (weights.rank() == 5 && input.rank() == 5 && weights[4] >= 0 && input[4] >= 0 &&
      weights[4] != input[4]) {
    return Unimplemented("its filter is of ", weights[4], " channels, not of ", input[4]);
  }
  ASSIGN_OR_RETURN(const Endpoint sizes, AsInt32(n.input(0), l));
  return One(l.Add("tfl.conv_3d_transpose", {sizes, n.input(1), n.input(2), l.NoValue()},
                   Options3D(n), l.OutputOf(n)));
}

LiteEndpoints Pool(Node& n, Legalizer& l) {
  constexpr DtypeSet kIntegers = Types(Dtype::kInt32, Dtype::kInt64);
  if (n.Is("MaxPool") && Has(kIntegers, n.output_types[0])) return LargestIntegers(n, l);
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  const ImageOp image(n);
  if (!image.known()) return Unimplemented("its data format is not known");
  const std::vector<int64_t> window = image.Ints("ksize"), strides = image.Ints("strides");
  if (window[0] != 1 || window[3] != 1 || strides[0] != 1 || strides[3] != 1) {
    return Unimplemented("its window reaches over images or channels");
  }
  // No mean takes in what is around.
  std::string padding;
  const float lowest = std::numeric_limits<float>::lowest();
  if (n.String("padding") == "EXPLICIT" && !n.Is("MaxPool")) {
    return Unimplemented("its padding is explicit");
  }
  ASSIGN_OR_RETURN(const Endpoint input, PaddedInput(n, n.input(0), l, &padding, lowest));
  return image.Result(l.Add(l.row().lite, {input},
                            Options({{"padding", padding},
                                     {"filter_height", window[1]},
                                     {"filter_width", window[2]},
                                     {"stride_h", strides[1]},
                                     {"stride_w", strides[2]}}),
                            image.Output(l)),
                      l);
}

// To these sizes; the first two, where more than one is free, are those of `like`.
StatusOr<Endpoint> WithSizes(Endpoint e, std::vector<int64_t> dims, Endpoint like, Legalizer& l) {
  for (int64_t& d : dims) d = std::max<int64_t>(d, -1);
  const LiteOutput out = {l.type(e), PartialShape::Of(dims)};
  if (std::ranges::count(dims, -1) <= 1) {
    return l.Add("tfl.reshape", {e, l.Ints(dims)}, Options({{"new_shape", dims}}), out);
  }
  if (like.node == nullptr || std::ranges::count(dims, -1) > 2 || dims[0] >= 0 || dims[1] >= 0) {
    return Unimplemented("more than one of its sizes is free");
  }
  const auto vector = [](size_t size) {
    return LiteOutput{Dtype::kInt32, PartialShape::Of({static_cast<int64_t>(size)})};
  };
  ASSIGN_OR_RETURN(const Endpoint all, l.ShapeOf(like));
  const std::vector<int64_t> begin = {0}, two = {2};
  ASSIGN_OR_RETURN(const Endpoint front,
                   l.Add("tfl.slice", {all, l.Ints(begin), l.Ints(two)}, {}, vector(2)));
  const Endpoint rest = l.Ints(std::span(dims).subspan(2));
  ASSIGN_OR_RETURN(const Endpoint shape,
                   l.Add("tfl.concatenation", {front, rest}, Options({{"axis", int64_t{0}}}),
                         vector(dims.size())));
  return l.Add("tfl.reshape", {e, shape}, {}, out);
}

// The largest, or the mean, of a window of volumes: first of rows and columns, then of what is one
// behind the other, as far as windows are more than one. Of padding neither takes anything in, so
// that a mean of means of equal counts is the mean.
LiteEndpoints Pool3D(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  RETURN_IF_ERROR(CheckFormat(n, "NDHWC"));
  const std::vector<int64_t> window = n.Ints("ksize"), strides = n.Ints("strides");
  if (window[0] != 1 || window[4] != 1 || strides[0] != 1 || strides[4] != 1) {
    return Unimplemented("its window reaches over volumes or channels");
  }
  const PartialShape in = l.shape(n.input(0)), out = l.shape({&n, 0});
  if (in.rank() != 5 || out.rank() != 5) return Unimplemented("the rank of its input is not known");
  const std::string padding = n.String("padding");
  for (int d = 1; d <= 3 && padding == "SAME"; ++d) {
    const auto i = static_cast<size_t>(d);
    // What TensorFlow leaves out in front and behind, half each.
    const bool known = in[d] > 0 && out[d] > 0;
    if (window[i] < strides[i] && (!known || in[d] - (out[d] - 1) * strides[i] - window[i] > 1)) {
      return Unimplemented(
          "its windows have gaps, of which the first ones begin behind the volume");
    }
  }
  const int64_t many = in[0] < 0 || in[1] < 0 ? -1 : in[0] * in[1];
  const int64_t plane = out[2] < 0 || out[3] < 0 ? -1 : out[2] * out[3];
  const auto pool = [&](Endpoint from, int64_t h, int64_t w, int64_t by_h, int64_t by_w,
                        std::vector<int64_t> dims) {
    for (int64_t& d : dims) d = std::max<int64_t>(d, -1);
    return l.Add(l.row().lite, {from},
                 Options({{"padding", padding},
                          {"filter_height", h},
                          {"filter_width", w},
                          {"stride_h", by_h},
                          {"stride_w", by_w}}),
                 {Dtype::kFloat, PartialShape::Of(dims)});
  };
  const auto moves = [&](size_t i) { return window[i] != 1 || strides[i] != 1; };
  Endpoint e = n.input(0);
  if (moves(2) || moves(3)) {
    ASSIGN_OR_RETURN(e, WithSizes(e, {many, in[2], in[3], in[4]}, {}, l));
    ASSIGN_OR_RETURN(
        e, pool(e, window[2], window[3], strides[2], strides[3], {many, out[2], out[3], in[4]}));
  }
  Endpoint ends = n.input(0);  // its first sizes are those of the result
  if (moves(1)) {
    ASSIGN_OR_RETURN(e, WithSizes(e, {in[0], in[1], plane, in[4]}, n.input(0), l));
    ASSIGN_OR_RETURN(e, pool(e, window[1], 1, strides[1], 1, {in[0], out[1], plane, in[4]}));
    ends = e;
  }
  return One(WithSizes(e, {out[0], out[1], out[2], out[3], out[4]}, ends, l));
}

// y = x * scale + shift, with scale = gamma / sqrt(variance + epsilon), shift = beta - mean *
// scale.
LiteEndpoints BatchNorm(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kFloatOnly));
  if (n.Bool("is_training", true)) return TrainingBatchNorm(n, l);
  const std::string format = n.String("data_format", "NHWC");
  const bool last = format == "NHWC" || format == "NDHWC";
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
  if (!last) {
    // Channels that come second broadcast over what is behind them.
    std::vector<int64_t> sizes(format.size() - 1, 1);
    sizes[0] = -1;
    for (Endpoint* e : {&scale, &shift}) {
      if (const auto value = l.Constant(*e)) {
        sizes[0] = value->num_elements();
        *e = l.Const(value->WithShape(Shape(sizes)));
      } else {
        ASSIGN_OR_RETURN(*e, WithSizes(*e, sizes, {}, l));
      }
    }
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
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kUint8, Dtype::kInt8, Dtype::kInt16)));
  Endpoint images = n.input(0);
  if (bilinear && l.type(images) != Dtype::kFloat) {
    // TensorFlow's gives float, whatever it takes.
    ASSIGN_OR_RETURN(
        images, l.Add("tfl.cast", {images},
                      Options({{"in_data_type", l.type(images)}, {"out_data_type", Dtype::kFloat}}),
                      {Dtype::kFloat, l.shape(images)}));
  }
  ASSIGN_OR_RETURN(const Endpoint size, AsInt32(n.input(1), l));
  return One(l.Add(l.row().lite, {images, size},
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
    {"MaxPool3D", Pool3D, "tfl.max_pool_2d"},
    {"AvgPool3D", Pool3D, "tfl.average_pool_2d"},
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
