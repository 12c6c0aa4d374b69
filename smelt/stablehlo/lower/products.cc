// Products: dot_general and convolution, as TensorFlow's products and convolutions where one fits,
// which the optimizer fuses with what follows, else as the Xla ops.
#include <algorithm>

#include "smelt/stablehlo/lower/builder.h"
#include "smelt/wire/xla/dimension_numbers.h"

namespace smelt::stablehlo {
namespace {

bool IsFloatProduct(Dtype a, Dtype b, Dtype to) {
  return a == b && a == to && (a == Dtype::kFloat || a == Dtype::kDouble || a == Dtype::kBfloat16);
}

bool CountsFromZero(const Dims& dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// MatMul and BatchMatMulV2 of operands whose batch dimensions stand in front and whose contracted
// dimension is one of the last two; false when the product is none of these.
StatusOr<bool> LowerMatrixProduct(Builder& b, const Operation& op, const DotDimensions& d) {
  const TypeData &lhs = b.type(op.operands[0]), &rhs = b.type(op.operands[1]);
  if (!IsFloatProduct(lhs.dtype, rhs.dtype, b.type(op.results[0]).dtype)) return false;
  if (d.lhs_contracting.size() != 1 || d.rhs_contracting.size() != 1) return false;
  const auto left = static_cast<int64_t>(lhs.dims.size());
  const auto right = static_cast<int64_t>(rhs.dims.size());
  const auto batch = static_cast<int64_t>(d.lhs_batch.size());
  if (!CountsFromZero(d.lhs_batch) || !CountsFromZero(d.rhs_batch)) return false;
  const int64_t l = d.lhs_contracting[0], r = d.rhs_contracting[0];
  AttrMap attrs;
  absl::string_view name;
  if (batch == 0 && left == 2 && right == 2) {
    name = "MatMul";
    attrs.Set("transpose_a", l == 0);
    attrs.Set("transpose_b", r == 1);
  } else if (left == batch + 2 && right == batch + 2 && l >= batch && r >= batch) {
    name = "BatchMatMulV2";
    attrs.Set("adj_x", l == batch);
    attrs.Set("adj_y", r == batch + 1);
  } else if (batch == 0 && left > 2 && right == 2 && l == left - 1 &&
             std::ranges::count_if(lhs.dims, [](int64_t n) { return n < 0; }) <= 1) {
    // One MatMul does for all leading dimensions: they become the rows of one matrix.
    const int64_t depth = lhs.dims.back();
    if (depth <= 0) return false;
    ASSIGN_OR_RETURN(const Endpoint x, b.Full(op.operands[0]));
    ASSIGN_OR_RETURN(const Endpoint w, b.Full(op.operands[1]));
    const int64_t rows[] = {-1, depth};
    ASSIGN_OR_RETURN(const Endpoint flat, b.Add("Reshape", {x, b.Ints(rows)}));
    attrs.Set("transpose_b", r == 1);
    ASSIGN_OR_RETURN(const Endpoint product, b.Add("MatMul", {flat, w}, std::move(attrs)));
    const Dims& to = b.type(op.results[0]).dims;
    if (std::ranges::find(to, 0) != to.end()) return false;
    ASSIGN_OR_RETURN(const Endpoint y, b.Add("Reshape", {product, b.Ints(to)}));
    b.SetFull(op.results[0], y);
    return true;
  } else {
    return false;
  }
  ASSIGN_OR_RETURN(std::vector<Endpoint> inputs, b.FullAll(op.operands));
  ASSIGN_OR_RETURN(const Endpoint y, b.Add(name, std::move(inputs), std::move(attrs)));
  b.SetFull(op.results[0], y);
  return true;
}

Status LowerDotGeneral(Builder& b, const Operation& op) {
  RETURN_IF_ERROR(b.Expect(op, 2, 1));
  DotDimensions d;
  ASSIGN_OR_RETURN(d.lhs_batch, b.IntsOf(op, "lhs_batching_dimensions"));
  ASSIGN_OR_RETURN(d.rhs_batch, b.IntsOf(op, "rhs_batching_dimensions"));
  ASSIGN_OR_RETURN(d.lhs_contracting, b.IntsOf(op, "lhs_contracting_dimensions"));
  ASSIGN_OR_RETURN(d.rhs_contracting, b.IntsOf(op, "rhs_contracting_dimensions"));
  ASSIGN_OR_RETURN(const bool done, LowerMatrixProduct(b, op, d));
  if (done) return OkStatus();
  ASSIGN_OR_RETURN(std::vector<Endpoint> inputs, b.FullAll(op.operands));
  AttrMap attrs;
  attrs.Set("dimension_numbers", SerializeDotDimensions(d));
  attrs.Set("precision_config", "");
  attrs.Set("preferred_element_type", b.type(op.results[0]).dtype);
  b.StateShape(op.results[0], &attrs);
  ASSIGN_OR_RETURN(const Endpoint y, b.Add("XlaDotV2", std::move(inputs), std::move(attrs)));
  b.SetFull(op.results[0], y);
  return OkStatus();
}

struct ConvWindow {
  ConvDimensions numbers;
  Dims strides, lhs_dilation, rhs_dilation, padding, reversal;  // padding: low and high by turns
  int64_t feature_groups = 1, batch_groups = 1;
};

bool AllOnes(const Dims& v) {
  return std::ranges::all_of(v, [](int64_t x) { return x == 1; });
}

StatusOr<ConvWindow> ReadConvWindow(Builder& b, const Operation& op) {
  ConvWindow w;
  ConvDimensions& n = w.numbers;
  ASSIGN_OR_RETURN(n.input_batch, b.IntOf(op, "input_batch_dimension"));
  ASSIGN_OR_RETURN(n.input_feature, b.IntOf(op, "input_feature_dimension"));
  ASSIGN_OR_RETURN(n.input_spatial, b.IntsOf(op, "input_spatial_dimensions"));
  ASSIGN_OR_RETURN(n.kernel_input, b.IntOf(op, "kernel_input_feature_dimension"));
  ASSIGN_OR_RETURN(n.kernel_output, b.IntOf(op, "kernel_output_feature_dimension"));
  ASSIGN_OR_RETURN(n.kernel_spatial, b.IntsOf(op, "kernel_spatial_dimensions"));
  ASSIGN_OR_RETURN(n.output_batch, b.IntOf(op, "output_batch_dimension"));
  ASSIGN_OR_RETURN(n.output_feature, b.IntOf(op, "output_feature_dimension"));
  ASSIGN_OR_RETURN(n.output_spatial, b.IntsOf(op, "output_spatial_dimensions"));
  ASSIGN_OR_RETURN(w.strides, b.IntsOf(op, "window_strides"));
  ASSIGN_OR_RETURN(w.lhs_dilation, b.IntsOf(op, "lhs_dilation"));
  ASSIGN_OR_RETURN(w.rhs_dilation, b.IntsOf(op, "rhs_dilation"));
  ASSIGN_OR_RETURN(w.reversal, b.IntsOf(op, "window_reversal"));
  ASSIGN_OR_RETURN(w.feature_groups, b.IntOf(op, "feature_group_count"));
  ASSIGN_OR_RETURN(w.batch_groups, b.IntOf(op, "batch_group_count"));
  const size_t spatial = n.input_spatial.size();
  for (const Dims* v : {&n.kernel_spatial, &n.output_spatial, &w.strides, &w.lhs_dilation,
                        &w.rhs_dilation, &w.reversal}) {
    if (v->size() != spatial) return InvalidArgument("the convolution's windows differ in rank");
  }
  for (size_t i = 0; i < 2; ++i) {
    if (b.type(op.operands[i]).dims.size() != spatial + 2) {
      return InvalidArgument("a convolution of ", b.type(op.operands[i]).ToString());
    }
  }
  return w;
}

// Whether Conv2D or its depthwise form can take it: NHWC images, HWIO filters, no dilated or
// negatively padded images.
bool IsPlainConv2d(Builder& b, const Operation& op, const ConvWindow& w) {
  const ConvDimensions& n = w.numbers;
  const Dtype t = b.type(op.operands[0]).dtype;
  return IsFloatProduct(t, b.type(op.operands[1]).dtype, b.type(op.results[0]).dtype) &&
         n.input_spatial == Dims{1, 2} && n.input_batch == 0 && n.input_feature == 3 &&
         n.kernel_spatial == Dims{0, 1} && n.kernel_input == 2 && n.kernel_output == 3 &&
         n.output_spatial == Dims{1, 2} && n.output_batch == 0 && n.output_feature == 3 &&
         AllOnes(w.lhs_dilation) && w.batch_groups == 1 && w.reversal == Dims{0, 0} &&
         std::ranges::all_of(w.padding, [](int64_t p) { return p >= 0; });
}

StatusOr<bool> LowerConv2d(Builder& b, const Operation& op, const ConvWindow& w) {
  if (!IsPlainConv2d(b, op, w)) return false;
  const Dims& filter = b.type(op.operands[1]).dims;
  const int64_t channels = b.type(op.operands[0]).dims[3];
  const bool depthwise = w.feature_groups > 1;
  if (depthwise && (w.feature_groups != channels || filter[2] != 1 || channels <= 0 ||
                    filter[3] % channels != 0 || !b.type(op.operands[1]).is_static())) {
    return false;
  }
  ASSIGN_OR_RETURN(std::vector<Endpoint> inputs, b.FullAll(op.operands));
  AttrMap attrs;
  attrs.Set("strides", std::vector<int64_t>{1, w.strides[0], w.strides[1], 1});
  attrs.Set("dilations", std::vector<int64_t>{1, w.rhs_dilation[0], w.rhs_dilation[1], 1});
  if (std::ranges::all_of(w.padding, [](int64_t p) { return p == 0; })) {
    attrs.Set("padding", "VALID");
  } else {
    attrs.Set("padding", "EXPLICIT");
    attrs.Set("explicit_paddings", std::vector<int64_t>{0, 0, w.padding[0], w.padding[1],
                                                        w.padding[2], w.padding[3], 0, 0});
  }
  if (depthwise) {
    const int64_t dims[] = {filter[0], filter[1], channels, filter[3] / channels};
    ASSIGN_OR_RETURN(inputs[1], b.Add("Reshape", {inputs[1], b.Ints(dims)}));
  }
  ASSIGN_OR_RETURN(const Endpoint y, b.Add(depthwise ? "DepthwiseConv2dNative" : "Conv2D",
                                           std::move(inputs), std::move(attrs)));
  b.SetFull(op.results[0], y);
  return true;
}

Status LowerXlaConv(Builder& b, const Operation& op, const ConvWindow& w, Endpoint padding) {
  ASSIGN_OR_RETURN(const Endpoint lhs, b.Full(op.operands[0]));
  ASSIGN_OR_RETURN(Endpoint rhs, b.Full(op.operands[1]));
  std::vector<int64_t> reversed;
  for (size_t i = 0; i < w.reversal.size(); ++i) {
    if (w.reversal[i] != 0) reversed.push_back(w.numbers.kernel_spatial[i]);
  }
  if (!reversed.empty()) {
    ASSIGN_OR_RETURN(rhs, b.Add("ReverseV2", {rhs, b.Ints(reversed)}));
  }
  AttrMap attrs;
  attrs.Set("dimension_numbers", SerializeConvDimensions(w.numbers));
  attrs.Set("precision_config", "");
  attrs.Set("preferred_element_type", b.type(op.results[0]).dtype);
  b.StateShape(op.results[0], &attrs);
  attrs.Set("batch_group_count", w.batch_groups);
  ASSIGN_OR_RETURN(const Endpoint y,
                   b.Add("XlaConvV2",
                         {lhs, rhs, b.Ints(w.strides), padding, b.Ints(w.lhs_dilation),
                          b.Ints(w.rhs_dilation), b.Int(w.feature_groups)},
                         std::move(attrs)));
  b.SetFull(op.results[0], y);
  return OkStatus();
}

Status LowerConvolution(Builder& b, const Operation& op) {
  RETURN_IF_ERROR(b.Expect(op, 2, 1));
  ASSIGN_OR_RETURN(ConvWindow w, ReadConvWindow(b, op));
  ASSIGN_OR_RETURN(w.padding, b.IntsOf(op, "padding"));
  const size_t spatial = w.strides.size();
  if (w.padding.size() != 2 * spatial) return InvalidArgument("the convolution's padding");
  ASSIGN_OR_RETURN(const bool done, LowerConv2d(b, op, w));
  if (done) return OkStatus();
  const Tensor padding =
      Tensor::Vector<int64_t>(w.padding).WithShape(Shape({static_cast<int64_t>(spatial), 2}));
  return LowerXlaConv(b, op, w, b.Const(padding));
}

Status LowerDynamicConv(Builder& b, const Operation& op) {
  RETURN_IF_ERROR(b.Expect(op, 3, 1));
  ASSIGN_OR_RETURN(const ConvWindow w, ReadConvWindow(b, op));
  ASSIGN_OR_RETURN(Endpoint padding, b.Full(op.operands[2]));
  ASSIGN_OR_RETURN(padding, b.Cast(padding, Dtype::kInt64));
  return LowerXlaConv(b, op, w, padding);
}

constexpr LowerRow kProductTable[] = {
    {"convolution", LowerConvolution},
    {"dot_general", LowerDotGeneral},
    {"dynamic_conv", LowerDynamicConv},
};

}  // namespace

extern const std::span<const LowerRow> kProductLowering = kProductTable;

}  // namespace smelt::stablehlo
