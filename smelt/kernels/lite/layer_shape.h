// What convolutions and fully connected layers of TensorFlow Lite say of their windows, and what
// that is for tensors of known shapes.
#ifndef SMELT_KERNELS_LITE_LAYER_SHAPE_H_
#define SMELT_KERNELS_LITE_LAYER_SHAPE_H_

#include <optional>

#include "smelt/kernels/lite/int8_layer.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::lite {

enum class LayerKind : uint8_t { kConv, kDepthwise, kTransposed, kDense };

struct LayerWindow {
  LayerKind kind = LayerKind::kConv;
  int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, multiplier = 1;
  nn::Padding padding = nn::Padding::kSame;
  bool keep_dims = false;  // of a fully connected layer

  // INVALID_ARGUMENT for strides or dilations below 1.
  static StatusOr<LayerWindow> Of(const Node& node, LayerKind kind);
};

struct Image {
  int64_t batch, in_h, in_w, depth, out_h, out_w, kernel_h, kernel_w, top, left;
};
// INVALID_ARGUMENT unless both are of rank 4 and fit.
StatusOr<Image> ImageOf(const LayerWindow& s, const Shape& in, const Shape& filter);

// The same of TRANSPOSE_CONV, which is a convolution backwards: in_* and out_* are sizes of
// `output` (what input 0, `sizes`, says) and of `in`. INVALID_ARGUMENT unless all fit.
struct TransposedImage {
  Shape output;
  Image image;
};
StatusOr<TransposedImage> TransposedImageOf(const LayerWindow& s, const Tensor& sizes,
                                            const Shape& in, const Shape& filter);

// Are windows of TRANSPOSE_CONV smaller than their strides, and is its padding SAME? XNNPACK leaves
// such layers to TensorFlow Lite's own kernel.
bool LeavesGaps(const LayerWindow& s, const Image& transposed);

// The shape of what a fully connected layer makes: [rows, units], or the input's with units in the
// place of its last dimension. INVALID_ARGUMENT where the two do not fit.
StatusOr<Shape> DenseOutput(const LayerWindow& s, const Shape& in, const Shape& weights);

// nullopt where the tensors do not fit or have no elements, which a run words, or where Int8Layer
// would have to make an image that is mostly padding.
std::optional<nn::Int8Window> Int8ShapeOf(const LayerWindow& s, const Shape& in,
                                          const Shape& weights);
// Would an image with its padding take many times what the input does?
bool IsMostlyPadding(const nn::Int8Window& window);
// Is input i a constant whose rows have an odd number of elements?
bool HasOddRows(const Node& node, int i);
// What the layer makes.
StatusOr<Shape> LayerOutput(const LayerWindow& s, const Shape& in, const Shape& weights);

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_LAYER_SHAPE_H_
