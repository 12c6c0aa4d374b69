// Shapes of convolutions, pools, normalization and image resizing.
#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/match.h"
#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

// Where batch, channels and space lie in a tensor of a data format.
struct NnLayout {
  int channels = 0;
  int space = 1;  // the first spatial dimension
  int num_space = 2;
};

// Nothing for formats that pack channels (NCHW_VECT_C).
std::optional<NnLayout> LayoutOf(const Node& n, int num_space) {
  const std::string format = n.String("data_format", num_space == 3 ? "NDHWC" : "NHWC");
  if (format == "NHWC" || format == "NDHWC") return NnLayout{num_space + 1, 1, num_space};
  if (format == "NCHW" || format == "NCDHW") return NnLayout{1, 2, num_space};
  return {};
}

// The value for a dimension of strides, window sizes, ...; 1 where the list is shorter.
int64_t PerDimension(const std::vector<int64_t>& values, int dim) {
  return dim < static_cast<int>(values.size()) ? values[dim] : 1;
}

struct NnWindow {
  std::vector<int64_t> ksize;  // by dimension of the input; kUnknownDim
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> explicit_paddings;
  std::string padding;
};

// Is there a window for each place, whatever their number?
bool KeepsSize(const NnWindow& w, int dim) {
  if (PerDimension(w.strides, dim) != 1) return false;
  if (w.padding == "SAME") return true;
  const int64_t k = PerDimension(w.ksize, dim);
  if (k <= 0) return false;
  int64_t padded = 0;
  for (size_t side = 0; side < 2 && w.padding == "EXPLICIT"; ++side) {
    const size_t at = 2 * static_cast<size_t>(dim) + side;
    if (at >= w.explicit_paddings.size()) return false;
    padded = AddDims(padded, w.explicit_paddings[at]);
  }
  return padded == MulDims(k - 1, PerDimension(w.dilations, dim));
}

StatusOr<int64_t> WindowedSize(int64_t in, const NnWindow& w, int dim) {
  const int64_t stride = PerDimension(w.strides, dim), dilation = PerDimension(w.dilations, dim);
  const int64_t k = PerDimension(w.ksize, dim);
  if (stride <= 0) return InvalidArgument("Stride must be > 0, but got ", stride);
  if (dilation <= 0) return InvalidArgument("Dilation rate must be > 0, but got ", dilation);
  if (in < 0) return KeepsSize(w, dim) ? in : kUnknownDim;
  // Rounded up; in + stride - 1 could overflow.
  if (w.padding == "SAME") return in / stride + (in % stride != 0 ? 1 : 0);
  if (k <= 0) return kUnknownDim;
  if (w.padding == "EXPLICIT") {
    if (2 * dim + 1 >= static_cast<int>(w.explicit_paddings.size())) return kUnknownDim;
    for (int side = 0; side < 2; ++side) in = AddDims(in, w.explicit_paddings[2 * dim + side]);
    if (in < 0) return kUnknownDim;
  }
  const int64_t reach = AddDims(MulDims(k - 1, dilation), 1);
  if (reach < 0) return kUnknownDim;
  const int64_t span = in - reach;
  const int64_t size = span < 0 ? (span + stride) / stride : span / stride + 1;
  if (size < 0) {
    return InvalidArgument("Negative dimension size caused by subtracting ", reach, " from ", in);
  }
  return size;
}

// The window slid over batch and space; channels as given.
StatusOr<PartialShape> SlideWindow(const PartialShape& in, const NnLayout& l, const NnWindow& w,
                                   int64_t channels) {
  PartialShape out = in;
  out.Set(l.channels, channels);
  for (int i = 0; i < l.num_space; ++i) {
    ASSIGN_OR_RETURN(const int64_t size, WindowedSize(in[l.space + i], w, l.space + i));
    out.Set(l.space + i, size);
  }
  return out;
}

NnWindow WindowOf(const Node& n) {
  NnWindow w;
  w.ksize = n.Ints("ksize");
  w.strides = n.Ints("strides");
  w.dilations = n.Ints("dilations");
  w.explicit_paddings = n.Ints("explicit_paddings");
  w.padding = n.String("padding");
  return w;
}

// Filters are [space..., in, out].
template <int kSpace>
Status ConvShape(ShapeContext& ctx) {
  const auto layout = LayoutOf(ctx.node(), kSpace);
  if (!layout || ctx.node().String("filter_format", "HWIO") != "HWIO") return OkStatus();
  ASSIGN_OR_RETURN(PartialShape in, WithRank(ctx.input(0), kSpace + 2));
  ASSIGN_OR_RETURN(const PartialShape filter, WithRank(ctx.input(1), kSpace + 2));
  // A Pad that was fused with the convolution.
  const std::vector<int64_t> pads = ctx.node().Ints("padding_list");
  for (int i = 0; i < kSpace + 2 && pads.size() == 2 * (kSpace + 2); ++i) {
    const size_t at = 2 * static_cast<size_t>(i);
    in.Set(i, AddDims(in[i], AddDims(pads[at], pads[at + 1])));
  }
  const int64_t depth = in[layout->channels], taken = filter[kSpace];
  if (depth > 0 && taken > 0 && depth % taken != 0) {
    return InvalidArgument("Depth of input (", depth,
                           ") is not a multiple of input depth of filter (", taken, ")");
  }
  NnWindow w = WindowOf(ctx.node());
  w.ksize.assign(kSpace + 2, 1);
  for (int i = 0; i < kSpace; ++i) w.ksize[layout->space + i] = filter[i];
  ASSIGN_OR_RETURN(PartialShape out, SlideWindow(in, *layout, w, filter[kSpace + 1]));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// Filters are [height, width, in, multiplier].
Status DepthwiseShape(ShapeContext& ctx) {
  const auto layout = LayoutOf(ctx.node(), 2);
  if (!layout) return OkStatus();
  ASSIGN_OR_RETURN(const PartialShape in, WithRank(ctx.input(0), 4));
  ASSIGN_OR_RETURN(const PartialShape filter, WithRank(ctx.input(1), 4));
  ASSIGN_OR_RETURN(const int64_t depth, MergeDims(in[layout->channels], filter[2]));
  NnWindow w = WindowOf(ctx.node());
  w.ksize.assign(4, 1);
  for (int i = 0; i < 2; ++i) w.ksize[layout->space + i] = filter[i];
  ASSIGN_OR_RETURN(PartialShape out, SlideWindow(in, *layout, w, MulDims(depth, filter[3])));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// Input 0 holds the sizes of the result: all of them, or the spatial ones alone.
template <int kSpace>
Status ConvBackpropInputShape(ShapeContext& ctx) {
  const auto layout = LayoutOf(ctx.node(), kSpace);
  PartialShape out = ctx.constant_as_shape(0);
  if (!layout || !out.known_rank()) {
    ctx.set_output(0, PartialShape::UnknownOfRank(kSpace + 2));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const PartialShape filter, WithRank(ctx.input(1), kSpace + 2));
  ASSIGN_OR_RETURN(const PartialShape grad, WithRank(ctx.input(2), kSpace + 2));
  if (out.rank() == kSpace) {
    PartialShape full = PartialShape::UnknownOfRank(kSpace + 2);
    for (int i = 0; i < kSpace; ++i) full.Set(layout->space + i, out[i]);
    full.Set(layout->channels, filter[kSpace]);
    out = std::move(full);
  } else {
    ASSIGN_OR_RETURN(out, WithRank(out, kSpace + 2));
  }
  ASSIGN_OR_RETURN(const int64_t batch, MergeDims(out[0], grad[0]));
  out.Set(0, batch);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status PoolOf(ShapeContext& ctx, int num_space, const NnWindow& w) {
  const auto layout = LayoutOf(ctx.node(), num_space);
  if (!layout) return OkStatus();
  ASSIGN_OR_RETURN(const PartialShape in, WithRank(ctx.input(0), num_space + 2));
  ASSIGN_OR_RETURN(PartialShape out, SlideWindow(in, *layout, w, in[layout->channels]));
  // Over channels windows may only lie side by side (ksize == stride).
  const int64_t depth = PerDimension(w.ksize, layout->channels);
  if (depth != 1) {
    const int64_t stride = PerDimension(w.strides, layout->channels);
    const bool even = depth > 0 && stride == depth && in[layout->channels] >= 0;
    out.Set(layout->channels, even ? in[layout->channels] / depth : kUnknownDim);
  }
  for (int i = 0; i < ctx.node().num_outputs(); ++i) ctx.set_output(i, out);
  return OkStatus();
}

template <int kSpace>
Status PoolShape(ShapeContext& ctx) {
  return PoolOf(ctx, kSpace, WindowOf(ctx.node()));
}

Status PoolV2Shape(ShapeContext& ctx) {
  const auto ksize = IntConstants(ctx, 1), strides = IntConstants(ctx, 2);
  if (!ksize || !strides || ksize->size() != 4 || strides->size() != 4) {
    ASSIGN_OR_RETURN(PartialShape in, WithRank(ctx.input(0), 4));
    const int64_t batch = in[0];
    in = PartialShape::UnknownOfRank(4);
    in.Set(0, batch);
    ctx.set_output(0, std::move(in));
    return OkStatus();
  }
  NnWindow w = WindowOf(ctx.node());
  w.ksize = *ksize;
  w.strides = *strides;
  return PoolOf(ctx, 2, w);
}

// Outputs 1 to 4 are vectors along the channels; reserve_space_3 of version 3 stays unknown.
Status BatchNormShape(ShapeContext& ctx) {
  const std::string format = ctx.node().String("data_format", "NHWC");
  ASSIGN_OR_RETURN(PartialShape y, WithRank(ctx.input(0), format.size() == 5 ? 5 : 4));
  const int at = absl::StartsWith(format, "NC") ? 1 : y.rank() - 1;
  int64_t channels = y[at];
  for (int i = 1; i <= 4; ++i) {
    ASSIGN_OR_RETURN(const PartialShape v, WithRank(ctx.input(i), 1));
    // While training, mean and variance may be empty.
    if (i >= 3 && ctx.node().Bool("is_training", true)) continue;
    ASSIGN_OR_RETURN(channels, MergeDims(channels, v[0]));
  }
  y.Set(at, channels);
  ctx.set_output(0, std::move(y));
  for (int i = 1; i <= 4; ++i) ctx.set_output(i, VectorShape(channels));
  return OkStatus();
}

Status SoftmaxShape(ShapeContext& ctx) {
  RETURN_IF_ERROR(RankAtLeast(ctx.input(0), 1));
  return SameShape(ctx);
}

Status SoftmaxLossShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape both, BroadcastShapes(ctx.input(0), ctx.input(1)));
  ASSIGN_OR_RETURN(both, WithRank(both, 2));
  ctx.set_output(0, VectorShape(both[0]));
  ctx.set_output(1, std::move(both));
  return OkStatus();
}

Status SparseSoftmaxLossShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape features, WithRank(ctx.input(0), 2));
  ASSIGN_OR_RETURN(const PartialShape labels, WithRank(ctx.input(1), 1));
  ASSIGN_OR_RETURN(const int64_t batch, MergeDims(features[0], labels[0]));
  features.Set(0, batch);
  ctx.set_output(0, VectorShape(batch));
  ctx.set_output(1, std::move(features));
  return OkStatus();
}

// images[batch, h, w, channels], size[2]
Status ResizeShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out, WithRank(ctx.input(0), 4));
  const PartialShape size = ctx.constant_as_shape(1);
  for (int i = 0; i < 2; ++i) out.Set(1 + i, size.rank() == 2 ? size[i] : kUnknownDim);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// image[batch, h, w, channels], boxes[n, 4], box_ind[n], size[2]
Status CropAndResizeShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(const PartialShape image, WithRank(ctx.input(0), 4));
  ASSIGN_OR_RETURN(const PartialShape boxes, WithRank(ctx.input(1), 2));
  ASSIGN_OR_RETURN(const PartialShape indices, WithRank(ctx.input(2), 1));
  ASSIGN_OR_RETURN(const int64_t count, MergeDims(boxes[0], indices[0]));
  const PartialShape size = ctx.constant_as_shape(3);
  const bool known = size.rank() == 2;
  ctx.set_output(0, PartialShape::Of({count, known ? size[0] : kUnknownDim,
                                      known ? size[1] : kUnknownDim, image[3]}));
  return OkStatus();
}

// Patches lie along the last dimension.
template <int kSpace>
Status PatchesShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(const PartialShape in, WithRank(ctx.input(0), kSpace + 2));
  NnWindow w = WindowOf(ctx.node());
  w.ksize = ctx.node().Ints("ksizes");
  w.dilations = ctx.node().Ints("rates");
  int64_t depth = in[kSpace + 1];
  for (int i = 1; i <= kSpace; ++i) depth = MulDims(depth, PerDimension(w.ksize, i));
  ASSIGN_OR_RETURN(PartialShape out, SlideWindow(in, NnLayout{kSpace + 1, 1, kSpace}, w, depth));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// The last kDims dimensions become fft_length, the innermost fft_length / 2 + 1 going forward.
template <bool kForward, int kDims>
Status RealFftShape(ShapeContext& ctx) {
  PartialShape out = ctx.input(0);
  RETURN_IF_ERROR(RankAtLeast(out, kDims));
  if (!out.known_rank()) return OkStatus();
  const PartialShape length = ctx.constant_as_shape(1);
  for (int i = 0; i < kDims; ++i) {
    int64_t size = length.rank() == kDims ? length[i] : kUnknownDim;
    if (kForward && i == kDims - 1 && size >= 0) size = size == 0 ? 0 : size / 2 + 1;
    out.Set(out.rank() - kDims + i, size);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// images[n, h, w, c], transforms, and the output's size[2].
Status ProjectiveTransformShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out, WithRank(ctx.input(0), 4));
  const PartialShape size = ctx.constant_as_shape(2);
  for (int i = 0; i < 2; ++i) out.Set(1 + i, size.rank() == 2 ? size[i] : kUnknownDim);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// Filters are [height, width, depth]; rates stand for dilations.
Status DilationShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(const PartialShape in, WithRank(ctx.input(0), 4));
  ASSIGN_OR_RETURN(const PartialShape filter, WithRank(ctx.input(1), 3));
  ASSIGN_OR_RETURN(const int64_t depth, MergeDims(in[3], filter[2]));
  NnWindow w = WindowOf(ctx.node());
  w.dilations = ctx.node().Ints("rates");
  w.ksize = {1, filter[0], filter[1], 1};
  ASSIGN_OR_RETURN(PartialShape out, SlideWindow(in, NnLayout{3, 1, 2}, w, depth));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// Each dimension has floor(size / ratio) cells; outputs 1 and 2, the borders of rows and columns,
// have one element more.
Status FractionalPoolShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out, WithRank(ctx.input(0), 4));
  const auto ratio = ctx.node().Get<std::vector<float>>("pooling_ratio", {});
  for (size_t i = 0; i < 4; ++i) {
    const int64_t size = out[static_cast<int>(i)];
    const bool known = size >= 0 && i < ratio.size() && ratio[i] >= 1;
    out.Set(static_cast<int>(i),
            known ? static_cast<int64_t>(std::floor(static_cast<float>(size) / ratio[i]))
                  : kUnknownDim);
  }
  for (int i = 1; i <= 2; ++i) ctx.set_output(i, VectorShape(AddDims(out[i], 1)));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// The image may be resized (kPaddings 2), and is padded before the convolution.
template <int kPaddings>
Status PaddedConvShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape in, WithRank(ctx.input(0), 4));
  ASSIGN_OR_RETURN(const PartialShape filter, WithRank(ctx.input(kPaddings + 1), 4));
  const PartialShape size = kPaddings == 2 ? ctx.constant_as_shape(1) : PartialShape();
  const auto pads = IntConstants(ctx, kPaddings);
  for (int i = 0; i < 2; ++i) {
    if (kPaddings == 2) in.Set(1 + i, size.rank() == 2 ? size[i] : kUnknownDim);
    const bool known = pads && pads->size() == 8;
    in.Set(1 + i, known ? AddDims(in[1 + i], AddDims((*pads)[2 + 2 * i], (*pads)[3 + 2 * i]))
                        : kUnknownDim);
  }
  NnWindow w = WindowOf(ctx.node());
  w.ksize = {1, filter[0], filter[1], 1};
  ASSIGN_OR_RETURN(PartialShape out, SlideWindow(in, NnLayout{3, 1, 2}, w, filter[3]));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

constexpr std::array kNnRows = {
    ShapeRule{"AvgPool", PoolShape<2>},
    ShapeRule{"AvgPool3D", PoolShape<3>},
    ShapeRule{"Conv2D", ConvShape<2>},
    ShapeRule{"Conv2DBackpropInput", ConvBackpropInputShape<2>},
    ShapeRule{"Conv3D", ConvShape<3>},
    ShapeRule{"Conv3DBackpropInputV2", ConvBackpropInputShape<3>},
    ShapeRule{"CropAndResize", CropAndResizeShape},
    ShapeRule{"DepthwiseConv2dNative", DepthwiseShape},
    ShapeRule{"Dilation2D", DilationShape},
    ShapeRule{"Dilation2DBackpropFilter", SecondShape},
    ShapeRule{"Dilation2DBackpropInput", SameShape},
    ShapeRule{"ExtractImagePatches", PatchesShape<2>},
    ShapeRule{"ExtractVolumePatches", PatchesShape<3>},
    ShapeRule{"FFT", SameShape},
    ShapeRule{"FFT2D", SameShape},
    ShapeRule{"FFT3D", SameShape},
    ShapeRule{"FractionalAvgPool", FractionalPoolShape},
    ShapeRule{"FractionalAvgPoolGrad", ShapeFromInputRule<0>},
    ShapeRule{"FractionalMaxPool", FractionalPoolShape},
    ShapeRule{"FractionalMaxPoolGrad", SameShape},
    ShapeRule{"FusedBatchNorm", BatchNormShape},
    ShapeRule{"FusedBatchNormV2", BatchNormShape},
    ShapeRule{"FusedPadConv2D", PaddedConvShape<1>},
    ShapeRule{"FusedResizeAndPadConv2D", PaddedConvShape<2>},
    ShapeRule{"IFFT", SameShape},
    ShapeRule{"IFFT2D", SameShape},
    ShapeRule{"IFFT3D", SameShape},
    ShapeRule{"IRFFT", RealFftShape<false, 1>},
    ShapeRule{"IRFFT2D", RealFftShape<false, 2>},
    ShapeRule{"IRFFT3D", RealFftShape<false, 3>},
    ShapeRule{"ImageProjectiveTransformV2", ProjectiveTransformShape},
    ShapeRule{"LRN", SameShape},
    ShapeRule{"LogSoftmax", SoftmaxShape},
    ShapeRule{"MaxPool", PoolShape<2>},
    ShapeRule{"MaxPool3D", PoolShape<3>},
    ShapeRule{"MaxPoolV2", PoolV2Shape},
    ShapeRule{"MaxPoolWithArgmax", PoolShape<2>},
    ShapeRule{"RFFT", RealFftShape<true, 1>},
    ShapeRule{"RFFT2D", RealFftShape<true, 2>},
    ShapeRule{"RFFT3D", RealFftShape<true, 3>},
    ShapeRule{"ResizeArea", ResizeShape},
    ShapeRule{"ResizeBicubic", ResizeShape},
    ShapeRule{"ResizeBilinear", ResizeShape},
    ShapeRule{"ResizeNearestNeighbor", ResizeShape},
    ShapeRule{"Softmax", SoftmaxShape},
    ShapeRule{"SoftmaxCrossEntropyWithLogits", SoftmaxLossShape},
    ShapeRule{"SparseSoftmaxCrossEntropyWithLogits", SparseSoftmaxLossShape},
    ShapeRule{"_FusedBatchNormEx", BatchNormShape},
    ShapeRule{"_FusedConv2D", ConvShape<2>},
    ShapeRule{"_FusedConv3D", ConvShape<3>},
    ShapeRule{"_MklFusedInstanceNorm", SameShape},
    ShapeRule{"_MklFusedMish", SameShape},
    ShapeRule{"_MklLayerNorm", SameShape},
    ShapeRule{"_MklSwish", SameShape},
    ShapeRule{"_FusedDepthwiseConv2dNative", DepthwiseShape},
};

}  // namespace

extern const std::span<const ShapeRule> kNnShapes;
constinit const std::span<const ShapeRule> kNnShapes = kNnRows;

}  // namespace smelt
