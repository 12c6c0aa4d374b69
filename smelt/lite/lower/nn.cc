// Operators of networks: convolutions, products, pools, normalizations, images.
#include <algorithm>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

AttrMap WindowAttrs(const Node& n) {
  AttrMap attrs;
  attrs.Set("padding", n.String("padding", "SAME"));
  attrs.Set("strides", std::vector<int64_t>{1, n.Int("stride_h"), n.Int("stride_w"), 1});
  return attrs;
}

// Weights in another order, at once where they are constant.
StatusOr<Endpoint> Permuted(Endpoint e, std::vector<int64_t> order, Lowering& l) {
  if (const auto value = l.Constant(e)) {
    ASSIGN_OR_RETURN(const Tensor moved, Transposed(*value, order));
    return l.Const(moved);
  }
  return l.Add("Transpose", {e, l.Ints(order)});
}

// The bias, where there is one, and the activation.
LoweredEndpoints Finished(Endpoint e, const Node& n, int bias, Lowering& l) {
  if (Lowering::Has(n, bias)) {
    ASSIGN_OR_RETURN(e, l.Add("BiasAdd", {e, n.input(bias)}));
  }
  return OneOf(l.Activated(e, n));
}

LoweredEndpoints Conv2D(Node& n, Lowering& l) {
  AttrMap attrs = WindowAttrs(n);
  attrs.Set("dilations", std::vector<int64_t>{1, n.Int("dilation_h_factor", 1),
                                              n.Int("dilation_w_factor", 1), 1});
  ASSIGN_OR_RETURN(const Endpoint filter, Permuted(n.input(1), {1, 2, 3, 0}, l));
  ASSIGN_OR_RETURN(const Endpoint e, l.Add("Conv2D", {n.input(0), filter}, std::move(attrs)));
  return Finished(e, n, 2, l);
}

// [1, height, width, channels * multiplier] there; [height, width, channels, multiplier] here.
LoweredEndpoints DepthwiseConv2D(Node& n, Lowering& l) {
  AttrMap attrs = WindowAttrs(n);
  attrs.Set("dilations", std::vector<int64_t>{1, n.Int("dilation_h_factor", 1),
                                              n.Int("dilation_w_factor", 1), 1});
  const PartialShape& filter = l.shape(n.input(1));
  const int64_t multiplier = n.Int("depth_multiplier");
  if (filter.rank() != 4 || filter[0] != 1 || multiplier <= 0 || filter[3] % multiplier != 0) {
    return InvalidArgument("its filter of shape ", filter.ToString(),
                           " is none of a depthwise convolution with multiplier ", multiplier);
  }
  // TensorFlow's depthwise op has one stride: others are those of a convolution of groups.
  const bool grouped = n.Int("stride_h") != n.Int("stride_w");
  const std::vector<int64_t> sizes = {filter[1], filter[2], grouped ? 1 : filter[3] / multiplier,
                                      grouped ? filter[3] : multiplier};
  Endpoint weights;
  if (const auto value = l.Constant(n.input(1))) {
    weights = l.Const(value->WithShape(Shape(sizes)));
  } else {
    ASSIGN_OR_RETURN(weights, l.Add("Reshape", {n.input(1), l.Ints(sizes)}));
  }
  ASSIGN_OR_RETURN(const Endpoint e,
                   l.Add(grouped ? OpName("Conv2D") : OpName("DepthwiseConv2dNative"),
                         {n.input(0), weights}, std::move(attrs)));
  return Finished(e, n, 2, l);
}

LoweredEndpoints TransposeConv(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint filter, Permuted(n.input(1), {1, 2, 0, 3}, l));
  ASSIGN_OR_RETURN(const Endpoint e,
                   l.Add("Conv2DBackpropInput", {n.input(0), filter, n.input(2)}, WindowAttrs(n)));
  return Finished(e, n, 3, l);
}

AttrMap WindowAttrs3D(const Node& n) {
  AttrMap attrs;
  attrs.Set("padding", n.String("padding", "SAME"));
  attrs.Set("strides",
            std::vector<int64_t>{1, n.Int("stride_d"), n.Int("stride_h"), n.Int("stride_w"), 1});
  attrs.Set("dilations",
            std::vector<int64_t>{1, n.Int("dilation_d_factor", 1), n.Int("dilation_h_factor", 1),
                                 n.Int("dilation_w_factor", 1), 1});
  return attrs;
}

LoweredEndpoints Conv3D(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint e, l.Add("Conv3D", {n.input(0), n.input(1)}, WindowAttrs3D(n)));
  return Finished(e, n, 2, l);
}

LoweredEndpoints TransposeConv3D(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint e, l.Add("Conv3DBackpropInputV2",
                                           {n.input(0), n.input(1), n.input(2)}, WindowAttrs3D(n)));
  return Finished(e, n, 3, l);
}

LoweredEndpoints Pool(Node& n, Lowering& l) {
  AttrMap attrs = WindowAttrs(n);
  attrs.Set("ksize", std::vector<int64_t>{1, n.Int("filter_height"), n.Int("filter_width"), 1});
  ASSIGN_OR_RETURN(const Endpoint e, l.Add(l.row().tensorflow, InputsOf(n), std::move(attrs)));
  return OneOf(l.Activated(e, n));
}

// Rows of the last dimension, or of as many elements as the weights have columns.
LoweredEndpoints FullyConnected(Node& n, Lowering& l) {
  const PartialShape& weights = l.shape(n.input(1));
  const PartialShape& input = l.shape(n.input(0));
  if (weights.rank() != 2) {
    return InvalidArgument("its weights have shape ", weights.ToString());
  }
  const int64_t depth = weights[1], units = weights[0];
  Endpoint x = n.input(0);
  if (input.rank() != 2 || input[1] != depth) {
    ASSIGN_OR_RETURN(x, l.Add("Reshape", {x, l.Ints(std::vector<int64_t>{-1, depth})}));
  }
  AttrMap attrs;
  attrs.Set("transpose_b", true);
  ASSIGN_OR_RETURN(Endpoint e, l.Add("MatMul", {x, n.input(1)}, std::move(attrs)));
  if (Lowering::Has(n, 2)) {
    ASSIGN_OR_RETURN(e, l.Add("BiasAdd", {e, n.input(2)}));
  }
  ASSIGN_OR_RETURN(e, l.Activated(e, n));
  if (!n.Bool("keep_num_dims") || input.rank() == 2) return std::vector<Endpoint>{e};
  if (input.rank() < 1) return InvalidArgument("it keeps dimensions that are not known");
  std::vector<int64_t> sizes;
  for (int i = 0; i + 1 < input.rank(); ++i) sizes.push_back(input[i]);
  sizes.push_back(units);
  if (std::ranges::count(sizes, -1) <= 1) {
    return OneOf(l.Add("Reshape", {e, l.Ints(sizes)}));
  }
  ASSIGN_OR_RETURN(const Endpoint shape, l.Add("Shape", {n.input(0)}));
  const std::vector<int64_t> zero = {0}, last = {input.rank() - 1}, one = {1};
  ASSIGN_OR_RETURN(const Endpoint rows,
                   l.Add("StridedSlice", {shape, l.Ints(zero), l.Ints(last), l.Ints(one)}));
  ASSIGN_OR_RETURN(const Endpoint all,
                   l.Add("ConcatV2", {rows, l.Ints(std::vector{units}), l.Int(0)}));
  return OneOf(l.Add("Reshape", {e, all}));
}

LoweredEndpoints BatchMatMul(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("adj_x", n.Bool("adj_x"));
  attrs.Set("adj_y", n.Bool("adj_y"));
  if (n.output_types[0] == Dtype::kInt32 && l.type(n.input(0)) == Dtype::kInt8) {
    attrs.Set("Tout", Dtype::kInt32);
    return OneOf(l.Add("BatchMatMulV3", InputsOf(n), std::move(attrs)));
  }
  return OneOf(l.Add("BatchMatMulV2", InputsOf(n), std::move(attrs)));
}

LoweredEndpoints Softmax(Node& n, Lowering& l) {
  Endpoint x = n.input(0);
  const float beta = n.Float("beta");
  if (beta != 1) {
    ASSIGN_OR_RETURN(const Endpoint factor, l.Number(beta, l.type(x)));
    ASSIGN_OR_RETURN(x, l.Add("Mul", {x, factor}));
  }
  return OneOf(l.Add("Softmax", {x}));
}

LoweredEndpoints LogSoftmax(Node& n, Lowering& l) {
  return OneOf(l.Add("LogSoftmax", InputsOf(n)));
}

LoweredEndpoints LocalResponse(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("depth_radius", n.Int("radius"));
  attrs.Set("bias", n.Float("bias"));
  attrs.Set("alpha", n.Float("alpha"));
  attrs.Set("beta", n.Float("beta"));
  return OneOf(l.Add("LRN", InputsOf(n), std::move(attrs)));
}

// x / sqrt(max(sum of squares, 1e-6)) along the last dimension.
LoweredEndpoints L2Normalization(Node& n, Lowering& l) {
  AttrMap keep;
  keep.Set("keep_dims", true);
  ASSIGN_OR_RETURN(const Endpoint square, l.Add("Square", {n.input(0)}));
  ASSIGN_OR_RETURN(const Endpoint sum,
                   l.Add("Sum", {square, l.Ints(std::vector<int64_t>{-1})}, std::move(keep)));
  ASSIGN_OR_RETURN(const Endpoint least, l.Number(1e-6, l.type(n.input(0))));
  ASSIGN_OR_RETURN(const Endpoint above, l.Add("Maximum", {sum, least}));
  ASSIGN_OR_RETURN(const Endpoint root, l.Add("Sqrt", {above}));
  ASSIGN_OR_RETURN(const Endpoint e, l.Add("RealDiv", {n.input(0), root}));
  return OneOf(l.Activated(e, n));
}

StatusOr<Endpoint> Resized(Node& n, Endpoint x, Lowering& l) {
  AttrMap attrs;
  attrs.Set("align_corners", n.Bool("align_corners"));
  attrs.Set("half_pixel_centers", n.Bool("half_pixel_centers"));
  return l.Add(l.row().tensorflow, {x, n.input(1)}, std::move(attrs));
}
LoweredEndpoints Resize(Node& n, Lowering& l) { return OneOf(Resized(n, n.input(0), l)); }

StatusOr<Endpoint> WithType(Endpoint e, OpName op, absl::string_view attr, Dtype type,
                            Lowering& l) {
  AttrMap attrs;
  attrs.Set(attr, type);
  return l.Add(op, {e}, std::move(attrs));
}

// Whatever has as many bytes is moved alike: TensorFlow's op takes neither bool nor uint32.
LoweredEndpoints ResizeNearest(Node& n, Lowering& l) {
  const Dtype type = l.type(n.input(0));
  if (type != Dtype::kBool && type != Dtype::kUint32) return Resize(n, l);
  const bool flags = type == Dtype::kBool;
  const OpName op = flags ? OpName("Cast") : OpName("Bitcast");
  const absl::string_view attr = flags ? "DstT" : "type";
  ASSIGN_OR_RETURN(const Endpoint x,
                   WithType(n.input(0), op, attr, flags ? Dtype::kUint8 : Dtype::kInt32, l));
  ASSIGN_OR_RETURN(const Endpoint y, Resized(n, x, l));
  return OneOf(WithType(y, op, attr, type, l));
}

// 0.5 x (1 + erf(x / sqrt(2))), or by tanh of a cubic.
LoweredEndpoints Gelu(Node& n, Lowering& l) {
  const Endpoint x = n.input(0);
  const Dtype type = l.type(x);
  ASSIGN_OR_RETURN(const Endpoint half, l.Number(0.5, type));
  ASSIGN_OR_RETURN(const Endpoint one, l.Number(1, type));
  Endpoint inner;
  if (n.Bool("approximate")) {
    ASSIGN_OR_RETURN(const Endpoint cubic, l.Number(0.044715f, type));
    ASSIGN_OR_RETURN(const Endpoint factor, l.Number(0.79788456f, type));
    ASSIGN_OR_RETURN(const Endpoint three, l.Number(3, type));
    ASSIGN_OR_RETURN(const Endpoint cube, l.Add("Pow", {x, three}));
    ASSIGN_OR_RETURN(const Endpoint scaled, l.Add("Mul", {cube, cubic}));
    ASSIGN_OR_RETURN(const Endpoint sum, l.Add("AddV2", {x, scaled}));
    ASSIGN_OR_RETURN(const Endpoint argument, l.Add("Mul", {sum, factor}));
    ASSIGN_OR_RETURN(inner, l.Add("Tanh", {argument}));
  } else {
    ASSIGN_OR_RETURN(const Endpoint factor, l.Number(0.70710678f, type));
    ASSIGN_OR_RETURN(const Endpoint argument, l.Add("Mul", {x, factor}));
    ASSIGN_OR_RETURN(inner, l.Add("Erf", {argument}));
  }
  ASSIGN_OR_RETURN(const Endpoint sum, l.Add("AddV2", {inner, one}));
  ASSIGN_OR_RETURN(const Endpoint halves, l.Add("Mul", {x, half}));
  return OneOf(l.Add("Mul", {halves, sum}));
}

// The root of the mean of squares.
LoweredEndpoints L2Pool(Node& n, Lowering& l) {
  AttrMap attrs = WindowAttrs(n);
  attrs.Set("ksize", std::vector<int64_t>{1, n.Int("filter_height"), n.Int("filter_width"), 1});
  ASSIGN_OR_RETURN(const Endpoint square, l.Add("Square", {n.input(0)}));
  ASSIGN_OR_RETURN(const Endpoint mean, l.Add("AvgPool", {square}, std::move(attrs)));
  ASSIGN_OR_RETURN(const Endpoint root, l.Add("Sqrt", {mean}));
  return OneOf(l.Activated(root, n));
}

// As many outputs as are wanted: the last ones are 0.
LoweredEndpoints Suppression(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("pad_to_max_output_size", true);
  attrs.Set("_drops_at_threshold", true);
  ASSIGN_OR_RETURN(Node * made, l.AddNode(l.row().tensorflow, InputsOf(n), std::move(attrs)));
  std::vector<Endpoint> out;
  for (int i = 0; i < made->num_outputs(); ++i) out.push_back({made, i});
  return out;
}

// What is missing of an image at its ends is zeros.
LoweredEndpoints RealFft2D(Node& n, Lowering& l) {
  const Endpoint x = n.input(0), lengths = n.input(1);
  const int rank = l.shape(x).rank();
  if (rank < 2) return SameOp(n, l);
  const std::vector<int64_t> last = {rank - 2}, two = {2};
  const Endpoint none = l.Ints(std::vector<int64_t>(static_cast<size_t>(rank), 0));
  const Endpoint lead = l.Ints(std::vector<int64_t>(static_cast<size_t>(rank - 2), 0));
  ASSIGN_OR_RETURN(const Endpoint shape, l.Add("Shape", {x}));
  ASSIGN_OR_RETURN(const Endpoint sizes, l.Add("Slice", {shape, l.Ints(last), l.Ints(two)}));
  ASSIGN_OR_RETURN(const Endpoint less, l.Add("Sub", {lengths, sizes}));
  ASSIGN_OR_RETURN(const Endpoint missing, l.Add("Maximum", {less, l.Int(0)}));
  AttrMap join, stack;
  join.Set("N", int64_t{2});
  stack.Set("N", int64_t{2});
  stack.Set("axis", int64_t{1});
  ASSIGN_OR_RETURN(const Endpoint behind,
                   l.Add("ConcatV2", {lead, missing, l.Int(0)}, std::move(join)));
  ASSIGN_OR_RETURN(const Endpoint edges, l.Add("Pack", {none, behind}, std::move(stack)));
  ASSIGN_OR_RETURN(const Endpoint padded, l.Add("Pad", {x, edges}));
  return OneOf(l.Add("RFFT2D", {padded, lengths}));
}

constexpr LowerRow kNnLowering[] = {
    {"tfl.conv_2d", Conv2D},
    {"tfl.depthwise_conv_2d", DepthwiseConv2D},
    {"tfl.transpose_conv", TransposeConv},
    {"tfl.conv_3d", Conv3D},
    {"tfl.conv_3d_transpose", TransposeConv3D},
    {"tfl.max_pool_2d", Pool, "MaxPool"},
    {"tfl.average_pool_2d", Pool, "AvgPool"},
    {"tfl.fully_connected", FullyConnected},
    {"tfl.batch_matmul", BatchMatMul},
    {"tfl.softmax", Softmax},
    {"tfl.log_softmax", LogSoftmax},
    {"tfl.local_response_normalization", LocalResponse},
    {"tfl.l2_normalization", L2Normalization},
    {"tfl.resize_bilinear", Resize, "ResizeBilinear"},
    {"tfl.resize_nearest_neighbor", ResizeNearest, "ResizeNearestNeighbor"},
    {"tfl.gelu", Gelu},
    {"tfl.l2_pool_2d", L2Pool},
    {"tfl.non_max_suppression_v4", Suppression, "NonMaxSuppressionV4"},
    {"tfl.non_max_suppression_v5", Suppression, "NonMaxSuppressionV5"},
    {"tfl.rfft2d", RealFft2D, "RFFT2D"},
};

}  // namespace

std::span<const LowerRow> NnLowering() { return kNnLowering; }

}  // namespace smelt
