#include "smelt/kernels/nn/window.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

namespace smelt::nn {
namespace {

constexpr int64_t kWindowLimit = std::numeric_limits<int32_t>::max();

// The spatial entries of an attribute that has one entry per dimension.
Dims SpatialOf(const std::vector<int64_t>& all, int spatial, bool channels_last) {
  const int first = channels_last ? 1 : 2;
  return Dims(all.begin() + first, all.begin() + first + spatial);
}

int64_t DepthEntry(const std::vector<int64_t>& all, bool channels_last) {
  return channels_last ? all.back() : all[1];
}

Status ParseExplicit(const std::vector<int64_t>& pads, ConvAttrs* a) {
  const size_t want = 2 * (a->spatial + 2);
  if (pads.size() != want) {
    return InvalidArgument("explicit_paddings attribute must contain ", want,
                           " values, but got: ", pads.size());
  }
  for (const int64_t p : pads) {
    if (p < 0) return InvalidArgument("All elements of explicit_paddings must be nonnegative");
    if (p > kWindowLimit) return InvalidArgument("explicit_paddings are too large: ", p);
  }
  const size_t depth = a->channels_last ? want - 2 : 2;
  if (pads[0] != 0 || pads[1] != 0 || pads[depth] != 0 || pads[depth + 1] != 0) {
    return InvalidArgument(
        "Nonzero explicit padding in the batch or depth dimensions is not supported");
  }
  const int first = a->channels_last ? 1 : 2;
  for (int i = 0; i < a->spatial; ++i) {
    a->pad_before.push_back(pads[2 * (first + i)]);
    a->pad_after.push_back(pads[2 * (first + i) + 1]);
  }
  return OkStatus();
}

// Strides and dilations have one entry per dimension, which is 1 for batch and depth. TensorFlow's
// error code differs from op to op.
Status CheckStepEntries(absl::string_view op, const std::vector<int64_t>& strides,
                        const std::vector<int64_t>& dilations, const ConvAttrs& a) {
  const size_t rank = a.spatial + 2;
  if (strides.size() != rank) {
    return InvalidArgument("Sliding window strides field must specify ", rank, " dimensions");
  }
  const bool gradient = absl::StrContains(op, "Backprop");
  if (dilations.size() != rank) {
    return InvalidArgument(
        gradient && a.spatial == 3 ? "Dilation rates" : "Sliding window dilations",
        " field must specify ", rank, " dimensions");
  }
  const bool quantized = absl::StartsWith(op, "Quantized");
  const Dims steps = SpatialOf(strides, a.spatial, a.channels_last);
  if ((a.depthwise || quantized) && steps[0] != steps[1]) {
    return InvalidArgument("Current implementation only supports equal length strides in the row ",
                           "and column dimensions.");
  }
  const bool invalid = a.spatial == 3 || quantized || op == "Conv2DBackpropFilter";
  if (strides[0] != 1 || DepthEntry(strides, a.channels_last) != 1) {
    constexpr absl::string_view kText =
        "Current implementation does not yet support strides in the batch and depth dimensions.";
    return invalid || a.depthwise ? InvalidArgument(kText) : Unimplemented(kText);
  }
  if (dilations[0] != 1 || DepthEntry(dilations, a.channels_last) != 1) {
    if (a.depthwise) {
      return Unimplemented("Current kernel implementation does not support dilations, received [",
                           absl::StrJoin(dilations, " "), "]");
    }
    const std::string text = absl::StrCat("Current implementation does not yet support ",
                                          a.spatial == 3 ? "dilation rates" : "dilations",
                                          " in the batch and depth ", "dimensions.");
    return invalid ? InvalidArgument(text) : Unimplemented(text);
  }
  return OkStatus();
}

}  // namespace

StatusOr<Padding> ParsePadding(const std::string& text) {
  if (text == "VALID") return Padding::kValid;
  if (text == "SAME") return Padding::kSame;
  if (text == "EXPLICIT") return Padding::kExplicit;
  return InvalidArgument("Value for attr 'padding' of \"", text, "\" is not in the list of ",
                         "allowed values: \"SAME\", \"VALID\", \"EXPLICIT\"");
}

StatusOr<ConvAttrs> ParseConvAttrs(const Node& node, int spatial, bool depthwise) {
  ConvAttrs a;
  a.spatial = spatial;
  a.depthwise = depthwise;
  const size_t rank = spatial + 2;
  const std::string format = node.String("data_format", spatial == 2 ? "NHWC" : "NDHWC");
  if (format == "NCHW" || format == "NCDHW") {
    a.channels_last = false;
  } else if (format != "NHWC" && format != "NDHWC") {
    return InvalidArgument("Invalid data format ", format);
  }
  const std::vector<int64_t> strides = node.Ints("strides");
  std::vector<int64_t> dilations = node.Ints("dilations");
  // TensorFlow's gradients of depthwise convolutions do not look at the dilations.
  if (dilations.empty() || (depthwise && absl::StrContains(node.op(), "Backprop"))) {
    dilations.assign(rank, 1);
  }
  RETURN_IF_ERROR(CheckStepEntries(node.op(), strides, dilations, a));
  a.strides = SpatialOf(strides, spatial, a.channels_last);
  a.dilations = SpatialOf(dilations, spatial, a.channels_last);
  for (const int64_t s : a.strides) {
    if (s <= 0) {
      return spatial == 2 && !depthwise
                 ? InvalidArgument("Row and column strides should be larger than 0.")
                 : InvalidArgument("Stride must be > 0, but got ", s);
    }
    if (s > kWindowLimit) return InvalidArgument("Stride ", s, " is too large");
  }
  for (const int64_t d : a.dilations) {
    if (d <= 0 && spatial == 3 && absl::StrContains(node.op(), "Backprop")) {
      return InvalidArgument(
          "Current CPU implementation does not yet support dilation rates larger than 1.");
    }
    if (d <= 0) return InvalidArgument("Dilated rates should be larger than 0.");
    if (d > kWindowLimit) return InvalidArgument("Dilation ", d, " is too large");
  }
  ASSIGN_OR_RETURN(a.padding, ParsePadding(node.String("padding")));
  const std::vector<int64_t> pads = node.Ints("explicit_paddings");
  if (a.padding == Padding::kExplicit) {
    RETURN_IF_ERROR(ParseExplicit(pads, &a));
  } else if (!pads.empty()) {
    return InvalidArgument(
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  }
  return a;
}

StatusOr<WindowSpan> SpanOf(int64_t in, int64_t kernel, int64_t dilation, int64_t stride,
                            Padding padding, int64_t before, int64_t after) {
  if (stride <= 0) return InvalidArgument("Stride must be > 0, but got ", stride);
  if (dilation < 1) return InvalidArgument("Dilation rate must be >= 1, but got ", dilation);
  if (in > kWindowLimit || kernel > kWindowLimit || stride > kWindowLimit ||
      dilation > kWindowLimit) {
    return InvalidArgument("Window too large: input ", in, ", filter ", kernel, ", stride ", stride,
                           ", dilation ", dilation);
  }
  WindowSpan s;
  const int64_t effective = (kernel - 1) * dilation + 1;
  switch (padding) {
    case Padding::kValid:
      s.out = (in - effective + stride) / stride;
      break;
    case Padding::kExplicit:
      s.before = before;
      s.after = after;
      s.out = (in + before + after - effective + stride) / stride;
      break;
    case Padding::kSame: {
      s.out = (in + stride - 1) / stride;
      const int64_t total = std::max<int64_t>(0, (s.out - 1) * stride + effective - in);
      s.before = total / 2;
      s.after = total - s.before;
      break;
    }
  }
  if (s.out < 0) {
    return InvalidArgument("Computed output size would be negative: ", s.out, " [input_size: ", in,
                           ", effective_filter_size: ", effective, ", stride: ", stride, "]");
  }
  return s;
}

StatusOr<Shape> ImageShape(int64_t batch, std::span<const int64_t> spatial, int64_t depth,
                           bool channels_last) {
  Dims dims;
  dims.push_back(batch);
  if (!channels_last) dims.push_back(depth);
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  if (channels_last) dims.push_back(depth);
  return Shape::Make(dims);
}

bool ConvProblem::is_padded() const {
  const auto pads = [](int64_t n) { return n > 0; };
  return std::ranges::any_of(pad_before, pads) || std::ranges::any_of(pad_after, pads);
}

bool ConvProblem::has_empty_window() const {
  for (size_t d = 0; d < in.size(); ++d) {
    for (int64_t o = 0; o < out[d]; ++o) {
      const int64_t begin = o * strides[d] - pad_before[d];
      // The first tap that is not before the image.
      const int64_t tap = begin >= 0 ? 0 : (-begin + dilations[d] - 1) / dilations[d];
      if (tap >= kernel[d] || begin + tap * dilations[d] >= in[d]) return true;
    }
  }
  return false;
}

int64_t ConvProblem::MultiplyAdds() const {
  // Saturating: only compared with thresholds.
  double n = static_cast<double>(batch) * out_depth * filter_in;
  for (const int64_t k : kernel) n *= static_cast<double>(k);
  for (const int64_t o : out) n *= static_cast<double>(o);
  return n > 9e18 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(n);
}

StatusOr<ConvProblem> MakeConvProblem(const ConvAttrs& a, const Shape& input, const Shape& filter,
                                      EmptyFilter empty) {
  const int rank = a.spatial + 2;
  if (input.rank() != rank) {
    if (a.depthwise) return InvalidArgument("input must be 4-dimensional", input.ToString());
    if (a.spatial == 3) return InvalidArgument("input must be 5-dimensional");
    return InvalidArgument("convolution input must be ", rank, "-dimensional: ", input.ToString());
  }
  if (filter.rank() != rank) {
    if (a.depthwise) return InvalidArgument("filter must be 4-dimensional: ", filter.ToString());
    if (a.spatial == 3) return InvalidArgument("filter must be 5-dimensional");
    return InvalidArgument("convolution filter must be ", rank,
                           "-dimensional: ", filter.ToString());
  }
  ConvProblem p;
  p.channels_last = a.channels_last;
  p.batch = input[0];
  p.in_depth = a.channels_last ? input.back() : input[1];
  if (a.depthwise) {
    if (p.in_depth != filter[a.spatial]) {
      return InvalidArgument("input and filter must have the same depth: ", p.in_depth, " vs ",
                             filter[a.spatial]);
    }
    p.filter_in = 1;
    p.groups = p.in_depth;
    if (filter.back() != 0 && p.in_depth > std::numeric_limits<int64_t>::max() / filter.back()) {
      return InvalidArgument("filter is too large: ", filter.ToString());
    }
    p.out_depth = p.in_depth * filter.back();
  } else {
    p.filter_in = filter[a.spatial];
    p.out_depth = filter.back();
    if (p.filter_in <= 0 && a.spatial == 3) {
      return InvalidArgument("filter_depth must be non-zero");
    }
    if (p.filter_in <= 0) {
      return InvalidArgument("filter depth must be stricly positive, got ", p.filter_in);
    }
    if (p.in_depth % p.filter_in != 0) {
      return InvalidArgument(a.spatial == 3 ? "Input" : "input",
                             " depth must be evenly divisible by filter depth: ", p.in_depth,
                             " vs ", p.filter_in);
    }
    p.groups = p.in_depth / p.filter_in;
    if (p.groups > 0 && p.out_depth % p.groups != 0) {
      return InvalidArgument("output depth must be evenly divisible by number of groups: ",
                             p.out_depth, " vs ", p.groups);
    }
  }
  const Status no_elements =
      InvalidArgument("filter must not have zero elements (i.e. all dimensions must be non-zero)");
  if (empty == EmptyFilter::kNever && filter.num_elements() == 0) return no_elements;
  const int first = a.channels_last ? 1 : 2;
  for (int i = 0; i < a.spatial; ++i) {
    const int64_t in = input[first + i];
    const int64_t k = filter[i];
    const bool given = a.padding == Padding::kExplicit;
    ASSIGN_OR_RETURN(const WindowSpan s,
                     SpanOf(in, k, a.dilations[i], a.strides[i], a.padding,
                            given ? a.pad_before[i] : 0, given ? a.pad_after[i] : 0));
    p.in.push_back(in);
    p.kernel.push_back(k);
    p.out.push_back(s.out);
    p.pad_before.push_back(s.before);
    p.pad_after.push_back(s.after);
  }
  p.strides = a.strides;
  p.dilations = a.dilations;
  ASSIGN_OR_RETURN(p.output, ImageShape(p.batch, p.out, p.out_depth, a.channels_last));
  if (empty != EmptyFilter::kAlways && p.output.num_elements() > 0 && filter.num_elements() == 0) {
    return no_elements;
  }
  return p;
}

StatusOr<ConvProblem> MakeConvGradientProblem(absl::string_view op, const ConvAttrs& a,
                                              const Shape& input, const Shape& filter,
                                              const Shape& output) {
  const bool last = a.channels_last;
  if (input[0] != output[0]) {
    return InvalidArgument(op, ": input and out_backprop must have the same batch size. ",
                           "Input batch: ", input[0], ", outbackprop batch: ", output[0],
                           ", batch_dim: 0");
  }
  const int64_t in_depth = last ? input.back() : input[1];
  const int64_t filter_in = filter[a.spatial];
  if (filter_in <= 0 || in_depth % filter_in != 0) {
    return InvalidArgument(op, ": input depth must be evenly divisible by filter depth");
  }
  if (filter.back() != (last ? output.back() : output[1])) {
    return InvalidArgument(op, ": filter and out_backprop must have the same out_depth");
  }
  ASSIGN_OR_RETURN(ConvProblem p, MakeConvProblem(a, input, filter));
  const int first = last ? 1 : 2;
  for (int i = 0; i < a.spatial; ++i) {
    if (p.out[i] == output[first + i]) continue;
    return InvalidArgument(
        op, ": Size of out_backprop doesn't match computed: actual = ", output[first + i],
        ", computed = ", p.out[i], " spatial_dim: ", first + i, " input: ", p.in[i],
        " filter: ", p.kernel[i], " output: ", output[first + i], " stride: ", p.strides[i],
        " dilation: ", p.dilations[i]);
  }
  return p;
}

}  // namespace smelt::nn
