// Convolutions and pooling, and their gradients.
#include <algorithm>

#include "smelt/analysis/estimate/rows.h"

namespace smelt::estimate {
namespace {

struct Window {
  int64_t batch, in_y, in_x, in_channels;
  int64_t kernel_y, kernel_x, kernel_channels;
  int64_t stride_y, stride_x;
  int64_t out_y, out_x, out_channels;

  int64_t out_pixels() const { return Multiply(batch, out_y, out_x); }
  int64_t in_pixels() const { return Multiply(batch, in_y, in_x); }
  int64_t kernel() const { return Multiply(kernel_y, kernel_x); }
};

// Four positive numbers, or ones.
Dims FourInts(const Node& node, absl::string_view name) {
  const std::vector<int64_t> values = node.Ints(name);
  const bool good =
      values.size() == 4 && std::ranges::all_of(values, [](int64_t v) { return v > 0; });
  return good ? Dims(values.begin(), values.end()) : Dims{1, 1, 1, 1};
}

int64_t OutputSize(int64_t in, int64_t kernel, int64_t stride, bool valid) {
  const int64_t most = std::numeric_limits<int64_t>::max() - stride;
  return (std::min(in, most) + stride - (valid ? kernel : 1)) / stride;
}

// All but the kernel and the output's channels.
Window ImageWindow(Op& op, const PartialShape& shape) {
  const std::string format = op.node.String("data_format", "NHWC");
  const bool vector = format == "NCHW_VECT_C";
  const bool second = format == "NCHW" || vector;
  const Dims image = op.Sizes(shape, vector ? 5 : 4);
  const Dims strides = FourInts(op.node, "strides");
  const size_t y = second ? 2 : 1, x = second ? 3 : 2;
  Window w = {};
  w.batch = image[0];
  w.in_y = image[y];
  w.in_x = image[x];
  w.in_channels = vector ? Multiply(image[1], image[4]) : image[second ? 1 : 3];
  w.stride_y = strides[y];
  w.stride_x = strides[x];
  return w;
}

void SetOutput(Op& op, Window& w) {
  const bool valid = op.node.String("padding") == "VALID";
  w.out_y = std::max<int64_t>(0, OutputSize(w.in_y, w.kernel_y, w.stride_y, valid));
  w.out_x = std::max<int64_t>(0, OutputSize(w.in_x, w.kernel_x, w.stride_x, valid));
}

// A multiplication and an addition for each element of the filter at each place of the output.
int64_t ConvolutionFlops(Op& op, const PartialShape& image, const PartialShape& filter_shape,
                         bool depthwise) {
  Window w = ImageWindow(op, image);
  const Dims filter = op.Sizes(filter_shape, 4);
  w.kernel_y = filter[0];
  w.kernel_x = filter[1];
  w.kernel_channels = filter[2];
  w.out_channels = filter[3];
  SetOutput(op, w);
  if (w.in_channels == 1 || w.kernel_channels == 1) {
    w.in_channels = w.kernel_channels = std::max(w.in_channels, w.kernel_channels);
  }
  const int64_t channels = depthwise ? w.in_channels : w.kernel_channels;
  return Multiply(2, w.out_pixels(), w.kernel(), channels, w.out_channels);
}

bool HasEmptyInput(const Op& op) {
  for (int i = 0; i < op.node.num_inputs(); ++i) {
    if (std::ranges::find(op.input(i).dims(), 0) != op.input(i).dims().end()) return true;
  }
  return false;
}

template <bool kDepthwise>
OpEstimate EstimateConvolution(Op& op) {
  if (HasEmptyInput(op)) return Op::Impossible();
  return op.Whole(ConvolutionFlops(op, op.input(0), op.input(1), kDepthwise));
}

// Of the image: inputs are its sizes, the filter and the gradient of the output.
template <bool kDepthwise>
OpEstimate EstimateImageGradient(Op& op) {
  if (HasEmptyInput(op)) return Op::Impossible();
  return op.Whole(ConvolutionFlops(op, op.output(0), op.input(1), kDepthwise));
}

// Of the filter: inputs are the image, the sizes of the filter and the gradient of the output.
template <bool kDepthwise>
OpEstimate EstimateFilterGradient(Op& op) {
  if (HasEmptyInput(op)) return Op::Impossible();
  return op.Whole(ConvolutionFlops(op, op.input(0), op.output(0), kDepthwise));
}

// Volumes: what TensorFlow's estimator has no row for.
OpEstimate EstimateConv3D(Op& op) {
  const Dims filter = op.Sizes(op.input(1), 5);
  const int64_t out = op.Elements(op.output(0));
  return op.Whole(Multiply(2, out, Multiply(filter[0], filter[1], filter[2], filter[3])));
}

Window PoolWindow(Op& op, const PartialShape& image) {
  Window w = ImageWindow(op, image);
  const bool second = op.node.String("data_format", "NHWC") == "NCHW";
  const Dims kernel = FourInts(op.node, "ksize");
  w.kernel_y = kernel[second ? 2 : 1];
  w.kernel_x = kernel[second ? 3 : 2];
  w.kernel_channels = w.out_channels = w.in_channels;
  SetOutput(op, w);
  return w;
}

// Rows of the image that no window touches are not read.
int64_t PoolBytesRead(Op& op, const Window& w) {
  if (w.kernel_y >= w.stride_y) return op.InputBytes(0);
  const int64_t size = static_cast<int64_t>(DtypeSize(BaseType(op.input_type(0))));
  return Multiply(size, w.batch, w.in_x, w.kernel_y, w.out_y, w.in_channels);
}

OpEstimate EstimatePool(Op& op, const Window& w, int64_t flops_each) {
  const int64_t read = PoolBytesRead(op, w), written = op.AllOutputBytes();
  return op.Of(Multiply(w.out_pixels(), w.out_channels, flops_each), read, written);
}

OpEstimate EstimateMaxPool(Op& op) {
  const Window w = PoolWindow(op, op.input(0));
  return EstimatePool(op, w, std::max<int64_t>(1, w.kernel() - 1));
}

OpEstimate EstimateAvgPool(Op& op) {
  const Window w = PoolWindow(op, op.input(0));
  return EstimatePool(op, w, w.kernel());
}

// Where windows overlap, gradients of a pixel are added.
bool WindowsOverlap(const Window& w) { return w.kernel_x > w.stride_x || w.kernel_y > w.stride_y; }

// Inputs are the image, the output, which is not read again, and the gradient of the output.
OpEstimate EstimateMaxPoolGrad(Op& op) {
  if (op.node.num_inputs() < 3) return Op::Impossible();
  const Window w = PoolWindow(op, op.input(0));
  int64_t pixels = w.in_pixels();
  if (w.kernel() > 1) {
    const int64_t spread = Multiply(pixels, WindowsOverlap(w) ? 2 : 1);
    pixels = AddEstimates(Multiply(w.out_pixels(), w.kernel() - 1), spread);
  }
  const int64_t image = op.InputBytes(0);
  return op.Of(Multiply(pixels, w.in_channels), AddEstimates(image, op.InputBytes(2)), image);
}

// Inputs are the sizes of the image and the gradient of the output.
OpEstimate EstimateAvgPoolGrad(Op& op) {
  const Window w = PoolWindow(op, op.output(0));
  const int64_t each = WindowsOverlap(w) ? AddEstimates(w.kernel(), 1) : 1;
  const int64_t pixels = AddEstimates(w.in_pixels(), Multiply(w.out_pixels(), each));
  return op.Whole(Multiply(pixels, w.in_channels));
}

constexpr Row kWindowRows[] = {
    {"AvgPool", EstimateAvgPool},
    {"AvgPoolGrad", EstimateAvgPoolGrad},
    {"Conv2D", EstimateConvolution<false>},
    {"Conv2DBackpropFilter", EstimateFilterGradient<false>},
    {"Conv2DBackpropInput", EstimateImageGradient<false>},
    {"Conv3D", EstimateConv3D, KnownOps::kMore},
    {"DepthwiseConv2dNative", EstimateConvolution<true>},
    {"DepthwiseConv2dNativeBackpropFilter", EstimateFilterGradient<true>},
    {"DepthwiseConv2dNativeBackpropInput", EstimateImageGradient<true>},
    {"MaxPool", EstimateMaxPool},
    {"MaxPoolGrad", EstimateMaxPoolGrad},
    {"_FusedConv2D", EstimateConvolution<false>, KnownOps::kMore},
    {"_FusedConv3D", EstimateConv3D, KnownOps::kMore},
    {"_FusedDepthwiseConv2dNative", EstimateConvolution<true>, KnownOps::kMore},
};

}  // namespace

const std::span<const Row> kWindows = kWindowRows;

}  // namespace smelt::estimate
