// Geometry of windows that slide over images: convolutions and pools share it.
#ifndef SMELT_KERNELS_NN_WINDOW_H_
#define SMELT_KERNELS_NN_WINDOW_H_

#include <string>

#include "smelt/graph/graph.h"
#include "smelt/tensor/tensor.h"

namespace smelt::nn {

enum class Padding : uint8_t { kValid, kSame, kExplicit };

// Attributes of a convolution, checked.
struct ConvAttrs {
  int spatial = 2;  // spatial dimensions
  bool channels_last = true;
  Padding padding = Padding::kValid;
  Dims strides;  // spatial ones only, as all below
  Dims dilations;
  Dims pad_before;  // kExplicit only
  Dims pad_after;
  bool depthwise = false;
};
// UNIMPLEMENTED or INVALID_ARGUMENT in TensorFlow's words. `spatial` is 2 or 3.
StatusOr<ConvAttrs> ParseConvAttrs(const Node& node, int spatial, bool depthwise);

// One dimension: how many windows there are, and the padding that makes it so.
struct WindowSpan {
  int64_t out = 0;
  int64_t before = 0;
  int64_t after = 0;
};
// `before` and `after` are read for kExplicit only. INVALID_ARGUMENT for a stride or dilation below
// 1, sizes over int32, or a negative number of windows.
StatusOr<WindowSpan> SpanOf(int64_t in, int64_t kernel, int64_t dilation, int64_t stride,
                            Padding padding, int64_t before, int64_t after);

StatusOr<Padding> ParsePadding(const std::string& text);

// A convolution of known shapes. The filter lies as [spatial..., filter_in, out_depth]: that of a
// depthwise convolution, [spatial..., in_depth, multiplier], is the same with filter_in 1.
struct ConvProblem {
  bool channels_last = true;
  int64_t batch = 0;
  int64_t in_depth = 0;
  int64_t out_depth = 0;
  int64_t filter_in = 0;  // in_depth / groups
  int64_t groups = 1;
  Dims in, kernel, out;  // spatial
  Dims strides, dilations, pad_before, pad_after;
  Shape output;

  // Does a window leave the image?
  bool is_padded() const;
  // Does a window see padding alone?
  bool has_empty_window() const;
  int spatial() const { return static_cast<int>(in.size()); }
  int64_t MultiplyAdds() const;  // saturates
};
// Where a filter may have no elements: ops differ.
enum class EmptyFilter : uint8_t { kForEmptyResult, kNever, kAlways };
// INVALID_ARGUMENT, in TensorFlow's words, when the shapes do not fit.
StatusOr<ConvProblem> MakeConvProblem(const ConvAttrs& attrs, const Shape& input,
                                      const Shape& filter,
                                      EmptyFilter empty = EmptyFilter::kForEmptyResult);

// The same where the output is given too, as gradients have it: INVALID_ARGUMENT, in TensorFlow's
// words with `op` in front, when the three do not fit.
StatusOr<ConvProblem> MakeConvGradientProblem(absl::string_view op, const ConvAttrs& attrs,
                                              const Shape& input, const Shape& filter,
                                              const Shape& output);

// The shape [batch, spatial..., depth], or with depth second.
StatusOr<Shape> ImageShape(int64_t batch, std::span<const int64_t> spatial, int64_t depth,
                           bool channels_last);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_WINDOW_H_
