#include "smelt/kernels/nn/pool.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "smelt/base/parallel.h"
#include "smelt/tensor/visit_types.h"

namespace smelt::nn {
namespace {

template <typename T>
constexpr T Least() {
  return std::numeric_limits<T>::lowest();
}

template <typename T>
void DepthPool(const PoolProblem& p, const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T best = x[i * p.depth_window];
    for (int64_t j = 1; j < p.depth_window; ++j) best = std::max(best, x[i * p.depth_window + j]);
    y[i] = best;
  }
}

template <typename T>
void PoolTyped(PoolKind kind, const PoolProblem& p, const T* x, T* y) {
  if (p.depth_window > 1) return DepthPool(p, x, y, p.output.num_elements());
  const PoolView v(p);
  // Channels second: each channel is an image of depth one.
  const int64_t images = p.channels_last ? p.batch : p.batch * p.depth;
  const int64_t depth = p.channels_last ? p.depth : 1;
  const int64_t work = std::max<int64_t>(1, v.taps() * depth);
  ParallelFor(images * v.out_pixels(), std::max<int64_t>(1, 16384 / work),
              [&](int64_t begin, int64_t end) {
                for (int64_t item = begin; item < end; ++item) {
                  const T* image = x + item / v.out_pixels() * v.in_pixels() * depth;
                  T* out = y + item * depth;
                  std::fill(out, out + depth, kind == PoolKind::kMax ? Least<T>() : T(0));
                  int64_t count = 0;
                  v.ForWindow(item % v.out_pixels(), [&](int64_t pixel) {
                    const T* in = image + pixel * depth;
                    ++count;
                    if (kind == PoolKind::kMax) {
                      for (int64_t c = 0; c < depth; ++c) out[c] = in[c] > out[c] ? in[c] : out[c];
                    } else {
                      for (int64_t c = 0; c < depth; ++c) out[c] = static_cast<T>(out[c] + in[c]);
                    }
                  });
                  if (kind == PoolKind::kAvg && count > 0) {
                    for (int64_t c = 0; c < depth; ++c) out[c] = static_cast<T>(out[c] / count);
                  }
                }
              });
}

template <typename T, typename I>
void ArgmaxTyped(const PoolProblem& p, bool batch_in_index, const T* x, T* y, I* argmax) {
  const PoolView v(p);
  const int64_t depth = p.depth;
  const int64_t image_size = v.in_pixels() * depth;
  const int64_t work = std::max<int64_t>(1, v.taps() * depth);
  ParallelFor(p.batch * v.out_pixels(), std::max<int64_t>(1, 16384 / work),
              [&](int64_t begin, int64_t end) {
                for (int64_t item = begin; item < end; ++item) {
                  const int64_t b = item / v.out_pixels();
                  const T* image = x + b * image_size;
                  const int64_t base = batch_in_index ? b * image_size : 0;
                  T* out = y + item * depth;
                  I* at = argmax + item * depth;
                  bool first = true;
                  v.ForWindow(item % v.out_pixels(), [&](int64_t pixel) {
                    const T* in = image + pixel * depth;
                    for (int64_t c = 0; c < depth; ++c) {
                      if (first || in[c] > out[c]) {
                        out[c] = in[c];
                        at[c] = static_cast<I>(base + pixel * depth + c);
                      }
                    }
                    first = false;
                  });
                  if (first) {  // a window without pixels
                    std::fill(out, out + depth, std::numeric_limits<T>::lowest());
                    std::fill(at, at + depth, I(0));
                  }
                }
              });
}

}  // namespace

Status CheckPoolSizes(const PoolAttrs& a) {
  for (const int64_t size : a.ksize) {
    if (size > 0) continue;
    if (a.spatial == 3) {
      return InvalidArgument("Sliding window ksize field must have non-negative dimensions");
    }
    if (a.kind == PoolKind::kMax && !a.with_argmax) {
      return InvalidArgument("Sliding window ksize must be positive. The specified or inferred ",
                             "ksize is: ", absl::StrJoin(a.ksize, ","));
    }
    return InvalidArgument("ksize must be a positive int32 value, got:", size);
  }
  return OkStatus();
}

Status CheckPoolWindow(const PoolAttrs& a) {
  const size_t rank = a.spatial + 2;
  if (a.ksize.size() != rank) {
    return InvalidArgument("Sliding window ksize field must specify ", rank, " dimensions");
  }
  if (a.strides.size() != rank) {
    return InvalidArgument("Sliding window ", a.gradient ? "strides" : "stride",
                           " field must specify ", rank, " dimensions");
  }
  // Which of two mistakes TensorFlow reports depends on the op.
  const bool sizes_first = !a.gradient && !a.with_argmax && (a.kind == PoolKind::kMax || rank == 5);
  if (sizes_first) RETURN_IF_ERROR(CheckPoolSizes(a));
  if (a.ksize[0] != 1 || a.strides[0] != 1) {
    return Unimplemented("Pooling is not yet supported on the batch dimension.");
  }
  const size_t depth = a.channels_last ? rank - 1 : 1;
  if (rank == 5 && !a.gradient && (a.ksize[depth] != 1 || a.strides[depth] != 1)) {
    return Unimplemented("Pooling is not yet supported on the depth dimension.");
  }
  return sizes_first || a.gradient ? OkStatus() : CheckPoolSizes(a);
}

StatusOr<PoolAttrs> ParsePoolAttrs(const Node& node, PoolKind kind, int spatial) {
  PoolAttrs a;
  a.kind = kind;
  a.spatial = spatial;
  a.with_argmax = node.Is("MaxPoolWithArgmax");
  a.gradient = absl::StrContains(node.op(), "Grad");
  const std::string format = node.String("data_format", spatial == 2 ? "NHWC" : "NDHWC");
  if (format == "NCHW" || format == "NCDHW") {
    a.channels_last = false;
  } else if (format != "NHWC" && format != "NDHWC") {
    return InvalidArgument("Invalid data format ", format);
  }
  ASSIGN_OR_RETURN(a.padding, ParsePadding(node.String("padding")));
  a.explicit_pads = node.Ints("explicit_paddings");
  if (a.padding == Padding::kExplicit) {
    const size_t want = 2 * (spatial + 2);
    if (a.explicit_pads.size() != want) {
      return InvalidArgument("explicit_paddings attribute must contain ", want,
                             " values, but got: ", a.explicit_pads.size());
    }
    for (const int64_t p : a.explicit_pads) {
      if (p < 0) return InvalidArgument("All elements of explicit_paddings must be nonnegative");
    }
    const size_t depth = a.channels_last ? want - 2 : 2;
    if (a.explicit_pads[0] != 0 || a.explicit_pads[1] != 0 || a.explicit_pads[depth] != 0 ||
        a.explicit_pads[depth + 1] != 0) {
      return InvalidArgument(
          "Nonzero explicit padding in the batch or depth dimensions is not supported");
    }
  } else if (!a.explicit_pads.empty() && !a.gradient) {
    return InvalidArgument(
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  }
  if (!node.Is("MaxPoolV2") && !node.Is("MaxPoolGradV2") && !node.Is("MaxPoolGradGradV2")) {
    a.ksize = node.Ints("ksize");
    a.strides = node.Ints("strides");
    RETURN_IF_ERROR(CheckPoolWindow(a));
  }
  return a;
}

StatusOr<PoolProblem> MakePoolProblem(const PoolAttrs& a, const Shape& input) {
  const int rank = a.spatial + 2;
  if (input.rank() != rank) {
    if (a.spatial == 3) return InvalidArgument("tensor_in must be 5-dimensional");
    if (a.with_argmax) return InvalidArgument("tensor_in must be 4-dimensional (2)");
    return InvalidArgument("tensor_in_shape must have 2 spatial dimensions. ", input.rank(), " ",
                           a.channels_last ? 0 : 1);
  }
  PoolProblem p;
  p.channels_last = a.channels_last;
  p.batch = input[0];
  const int depth_dim = a.channels_last ? rank - 1 : 1;
  const int first = a.channels_last ? 1 : 2;
  p.depth = input[depth_dim];
  p.depth_window = a.ksize[depth_dim];
  bool spatial_window = false;
  for (int i = 0; i < a.spatial; ++i) spatial_window |= a.ksize[first + i] != 1;
  if (p.depth_window > 1) {
    if (spatial_window) {
      return Unimplemented("MaxPooling supports exactly one of pooling across depth or pooling ",
                           "across width/height.");
    }
    if (a.kind == PoolKind::kAvg || a.spatial == 3 || !a.channels_last) {
      return Unimplemented("Non-spatial pooling is not yet supported. Volunteers? :)");
    }
    if (p.depth % p.depth_window != 0) {
      return Unimplemented("Depthwise max pooling requires the depth window to evenly divide the ",
                           "input depth");
    }
    if (a.strides[depth_dim] != p.depth_window) {
      return Unimplemented("Depthwise max pooling requires the depth window to equal the depth ",
                           "stride");
    }
  }
  for (int i = 0; i < a.spatial; ++i) {
    const bool given = a.padding == Padding::kExplicit;
    const int64_t before = given ? a.explicit_pads[2 * (first + i)] : 0;
    const int64_t after = given ? a.explicit_pads[2 * (first + i) + 1] : 0;
    const int64_t k = a.ksize[first + i];
    static constexpr absl::string_view kSides[2][2] = {{"Top", "Bottom"}, {"Left", "Right"}};
    for (const bool end : {false, true}) {
      const int64_t pad = end ? after : before;
      if (given && pad >= k) {
        return InvalidArgument(kSides[i & 1][end], " padding ", pad,
                               " needs to be smaller than the window size ", k);
      }
    }
    ASSIGN_OR_RETURN(WindowSpan s, SpanOf(input[first + i], k, 1, a.strides[first + i], a.padding,
                                          before, after));
    if (a.spatial == 3 && !a.gradient && a.padding == Padding::kSame && s.out > 0) {
      // Windows with gaps between them: TensorFlow skips half of the last gap in front.
      const int64_t beside = (s.out - 1) * a.strides[first + i] + k - input[first + i];
      if (beside < 0) s.before = beside / 2, s.after = beside - s.before;
    }
    p.in.push_back(input[first + i]);
    p.kernel.push_back(k);
    p.strides.push_back(a.strides[first + i]);
    p.out.push_back(s.out);
    p.pad_before.push_back(s.before);
    p.pad_after.push_back(s.after);
  }
  ASSIGN_OR_RETURN(p.output, ImageShape(p.batch, p.out, p.depth / p.depth_window, a.channels_last));
  return p;
}

void PoolReference(PoolKind kind, const PoolProblem& p, Dtype dtype, const void* x, void* y) {
  if (p.output.num_elements() == 0) return;
  using Types = decltype(CppTypes<double>() + IntTypes() + CppTypes<float>());
  VisitOneOf(Types(), dtype, [&]<typename T>() {
    PoolTyped<T>(kind, p, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

void MaxPoolArgmax(const PoolProblem& p, bool batch_in_index, const Tensor& input, Tensor* output,
                   Tensor* argmax) {
  if (output->num_elements() == 0) return;
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    if (argmax->dtype() == Dtype::kInt32) {
      ArgmaxTyped(p, batch_in_index, input.data<T>(), output->data<T>(), argmax->data<int32_t>());
    } else {
      ArgmaxTyped(p, batch_in_index, input.data<T>(), output->data<T>(), argmax->data<int64_t>());
    }
  };
  switch (input.dtype()) {
    case Dtype::kDouble:
      return run(double{});
    case Dtype::kInt8:
      return run(int8_t{});
    case Dtype::kInt16:
      return run(int16_t{});
    case Dtype::kInt32:
      return run(int32_t{});
    case Dtype::kInt64:
      return run(int64_t{});
    case Dtype::kUint8:
      return run(uint8_t{});
    case Dtype::kUint16:
      return run(uint16_t{});
    case Dtype::kUint32:
      return run(uint32_t{});
    case Dtype::kUint64:
      return run(uint64_t{});
    default:
      return run(float{});
  }
}

}  // namespace smelt::nn
