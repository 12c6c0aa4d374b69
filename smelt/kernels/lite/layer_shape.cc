#include "smelt/kernels/lite/layer_shape.h"

#include <algorithm>

#include "smelt/graph/constant.h"

namespace smelt::lite {

StatusOr<LayerWindow> LayerWindow::Of(const Node& node, LayerKind kind) {
  LayerWindow s;
  s.kind = kind;
  s.keep_dims = node.Bool("keep_num_dims");
  if (kind == LayerKind::kDense) return s;
  s.stride_h = node.Int("stride_h");
  s.stride_w = node.Int("stride_w");
  s.dilation_h = node.Int("dilation_h_factor", 1);
  s.dilation_w = node.Int("dilation_w_factor", 1);
  s.multiplier = node.Int("depth_multiplier", 1);
  if (std::min({s.stride_h, s.stride_w, s.dilation_h, s.dilation_w}) < 1) {
    return InvalidArgument("strides and dilations must be positive");
  }
  ASSIGN_OR_RETURN(s.padding, nn::ParsePadding(node.String("padding", "SAME")));
  return s;
}

StatusOr<Image> ImageOf(const LayerWindow& s, const Shape& in, const Shape& filter) {
  if (in.rank() != 4 || filter.rank() != 4) {
    return InvalidArgument("an image of shape ", in.ToString(), " and a filter of shape ",
                           filter.ToString());
  }
  if (filter[1] == 0 || filter[2] == 0) {
    return InvalidArgument("a filter of shape ", filter.ToString(), " has no elements");
  }
  Image m = {in[0], in[1], in[2], in[3], 0, 0, filter[1], filter[2], 0, 0};
  ASSIGN_OR_RETURN(const nn::WindowSpan h,
                   nn::SpanOf(m.in_h, m.kernel_h, s.dilation_h, s.stride_h, s.padding, 0, 0));
  ASSIGN_OR_RETURN(const nn::WindowSpan w,
                   nn::SpanOf(m.in_w, m.kernel_w, s.dilation_w, s.stride_w, s.padding, 0, 0));
  m.out_h = h.out;
  m.out_w = w.out;
  m.top = h.before;
  m.left = w.before;
  return m;
}

StatusOr<TransposedImage> TransposedImageOf(const LayerWindow& s, const Tensor& sizes,
                                            const Shape& in, const Shape& filter) {
  if (sizes.dtype() != Dtype::kInt32 || sizes.num_elements() != 4) {
    return InvalidArgument("its output shape is no vector of 4 int32");
  }
  const auto given = sizes.flat<int32_t>();
  TransposedImage t;
  ASSIGN_OR_RETURN(t.output, Shape::Make(Dims(given.begin(), given.end())));
  ASSIGN_OR_RETURN(t.image, ImageOf(s, t.output, filter));
  Image& m = t.image;
  m.depth = filter[3];
  if (!(in == Shape({m.batch, m.out_h, m.out_w, m.depth})) || filter[0] != t.output[3]) {
    return InvalidArgument("an input of shape ", in.ToString(), " and a filter of shape ",
                           filter.ToString(), " for an output of shape ", t.output.ToString());
  }
  return t;
}

bool LeavesGaps(const LayerWindow& s, const Image& m) {
  return s.padding == nn::Padding::kSame && (m.kernel_h < s.stride_h || m.kernel_w < s.stride_w);
}

StatusOr<Shape> DenseOutput(const LayerWindow& s, const Shape& in, const Shape& weights) {
  if (weights.rank() != 2 || weights[1] == 0 || in.num_elements() % weights[1] != 0) {
    return InvalidArgument("weights of shape ", weights.ToString(), " for an input of shape ",
                           in.ToString());
  }
  Dims dims = {in.num_elements() / weights[1], weights[0]};
  if (s.keep_dims && in.rank() > 0) {
    if (in[in.rank() - 1] != weights[1]) {
      return InvalidArgument("it keeps dimensions of no rows");
    }
    dims.assign(in.dims().begin(), in.dims().end());
    dims.back() = weights[0];
  }
  return Shape::Make(dims);
}

bool HasOddRows(const Node& node, int i) {
  const TensorValue* stated = StatedConstant(*node.input(i).node);
  if (stated == nullptr || !stated->shape.known_rank() || stated->shape.rank() == 0) return false;
  const int64_t last = stated->shape[stated->shape.rank() - 1];
  return last >= 0 && last % 2 != 0;
}

StatusOr<Shape> LayerOutput(const LayerWindow& s, const Shape& in, const Shape& weights) {
  if (s.kind == LayerKind::kDense) return DenseOutput(s, in, weights);
  ASSIGN_OR_RETURN(const Image m, ImageOf(s, in, weights));
  const bool depthwise = s.kind == LayerKind::kDepthwise;
  const bool fits =
      depthwise ? weights[0] == 1 && s.multiplier >= 1 && m.depth * s.multiplier == weights[3]
                : weights[3] != 0 && m.depth != 0 && m.depth % weights[3] == 0 &&
                      weights[0] % (m.depth / weights[3]) == 0;
  if (!fits) {
    return InvalidArgument("a filter of shape ", weights.ToString(), " over ", m.depth,
                           " channels");
  }
  return Shape::Make(Dims{m.batch, m.out_h, m.out_w, weights[depthwise ? 3 : 0]});
}

std::optional<nn::Int8Window> Int8ShapeOf(const LayerWindow& s, const Shape& in,
                                          const Shape& weights) {
  if (in.num_elements() == 0 || weights.num_elements() == 0) return std::nullopt;
  auto output = LayerOutput(s, in, weights);
  if (!output.ok() || output->num_elements() == 0) return std::nullopt;
  nn::Int8Window shape;
  if (s.kind == LayerKind::kDense) {
    shape.depth = weights[1];
    shape.units = weights[0];
    shape.in_w = shape.out_w = in.num_elements() / shape.depth;
    return shape;
  }
  auto image = ImageOf(s, in, weights);
  if (!image.ok()) return std::nullopt;
  shape.depthwise = s.kind == LayerKind::kDepthwise;
  shape.units = weights[shape.depthwise ? 3 : 0];
  shape.groups = shape.depthwise ? 1 : image->depth / weights[3];
  shape.batch = image->batch, shape.in_h = image->in_h, shape.in_w = image->in_w;
  shape.depth = image->depth, shape.out_h = image->out_h, shape.out_w = image->out_w;
  shape.kernel_h = image->kernel_h, shape.kernel_w = image->kernel_w;
  shape.top = image->top, shape.left = image->left;
  shape.stride_h = s.stride_h, shape.stride_w = s.stride_w;
  shape.dilation_h = s.dilation_h, shape.dilation_w = s.dilation_w;
  if (IsMostlyPadding(shape)) return std::nullopt;
  return shape;
}

bool IsMostlyPadding(const nn::Int8Window& w) {
  const auto lines =
      static_cast<double>((w.out_h - 1) * w.stride_h + 1 + (w.kernel_h - 1) * w.dilation_h);
  const auto across =
      static_cast<double>((w.out_w - 1) * w.stride_w + 1 + (w.kernel_w - 1) * w.dilation_w);
  return lines * across > 64 + 16 * static_cast<double>(w.in_h * w.in_w);
}

}  // namespace smelt::lite
