// Pools and bilinear resizing of quantized images.
#include "absl/strings/str_cat.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/lite/fixed_point.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::lite {
namespace {

struct PoolState final : KernelState {
  nn::Padding padding = nn::Padding::kSame;
  int64_t stride_h = 1, stride_w = 1, height = 1, width = 1;
  Range range;
};

StatusOr<std::unique_ptr<KernelState>> PreparePool(const Node& node) {
  auto s = std::make_unique<PoolState>();
  ASSIGN_OR_RETURN(s->padding, nn::ParsePadding(node.String("padding", "SAME")));
  s->stride_h = node.Int("stride_h");
  s->stride_w = node.Int("stride_w");
  s->height = node.Int("filter_height");
  s->width = node.Int("filter_width");
  if (std::min({s->stride_h, s->stride_w, s->height, s->width}) < 1) {
    return InvalidArgument("windows and strides must be positive");
  }
  s->range = ActivatedRange(node, OutputAffine(node));
  return s;
}

// The most of each channel of pixels [x0, x1) of lines [y0, y1); low where there are none.
void MostOf(const int8_t* image, int64_t in_w, int64_t depth, int64_t y0, int64_t y1, int64_t x0,
            int64_t x1, const Range& range, int8_t* to) {
  std::fill_n(to, depth, static_cast<int8_t>(range.low));
  for (int64_t iy = y0; iy < y1; ++iy) {
    for (int64_t ix = x0; ix < x1; ++ix) {
      IsaExactInt8().maximum(image + (iy * in_w + ix) * depth, to, depth);
    }
  }
  if (range.high == 127) return;
  for (int64_t c = 0; c < depth; ++c) to[c] = std::min(to[c], static_cast<int8_t>(range.high));
}

template <bool kMax>
Status RunPool(OpContext& ctx) {
  const auto& s = ctx.state<PoolState>();
  const Tensor& in = ctx.input(0);
  if (in.rank() != 4) return InvalidArgument("an image of shape ", in.shape().ToString());
  const int64_t in_h = in.dim(1), in_w = in.dim(2), depth = in.dim(3);
  ASSIGN_OR_RETURN(const nn::WindowSpan h,
                   nn::SpanOf(in_h, s.height, 1, s.stride_h, s.padding, 0, 0));
  ASSIGN_OR_RETURN(const nn::WindowSpan w,
                   nn::SpanOf(in_w, s.width, 1, s.stride_w, s.padding, 0, 0));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({in.dim(0), h.out, w.out, depth})));
  if (out->num_elements() == 0) return OkStatus();
  VisitNarrow(in.dtype(), [&]<typename T>() {
    const T* x = in.data<T>();
    T* y = out->data<T>();
    ParallelFor(in.dim(0) * h.out, 1, [&](int64_t begin, int64_t end) {
      std::vector<int32_t> sums(static_cast<size_t>(depth));
      for (int64_t line = begin; line < end; ++line) {
        const int64_t b = line / h.out, top = line % h.out * s.stride_h - h.before;
        for (int64_t ox = 0; ox < w.out; ++ox) {
          const int64_t left = ox * s.stride_w - w.before;
          const int64_t y0 = std::max<int64_t>(top, 0), y1 = std::min(top + s.height, in_h);
          const int64_t x0 = std::max<int64_t>(left, 0), x1 = std::min(left + s.width, in_w);
          if constexpr (kMax && std::is_same_v<T, int8_t>) {
            MostOf(x + b * in_h * in_w * depth, in_w, depth, y0, y1, x0, x1, s.range,
                   y + (line * w.out + ox) * depth);
            continue;
          }
          std::fill(sums.begin(), sums.end(), kMax ? std::numeric_limits<T>::min() : 0);
          for (int64_t iy = y0; iy < y1; ++iy) {
            for (int64_t ix = x0; ix < x1; ++ix) {
              const T* p = x + ((b * in_h + iy) * in_w + ix) * depth;
              if constexpr (std::is_same_v<T, int8_t>) {
                IsaExactInt8().accumulate(p, sums.data(), depth);
                continue;
              }
              for (int64_t c = 0; c < depth; ++c) {
                int32_t& sum = sums[static_cast<size_t>(c)];
                sum = kMax ? std::max(sum, int32_t{p[c]}) : sum + p[c];
              }
            }
          }
          const auto count = static_cast<int32_t>(std::max<int64_t>(1, (y1 - y0) * (x1 - x0)));
          T* to = y + (line * w.out + ox) * depth;
          for (int64_t c = 0; c < depth; ++c) {
            int32_t value = sums[static_cast<size_t>(c)];
            // Means are rounded half away from zero.
            if (!kMax) value = (value > 0 ? value + count / 2 : value - count / 2) / count;
            to[c] = static_cast<T>(s.range.Clamp(value));
          }
        }
      }
    });
  });
  return OkStatus();
}

std::string DeclinePool(const Node& node) {
  if (InputAffine(node, 0) == OutputAffine(node)) return DeclineUnlessNarrow(node, 1);
  return "its input and output are of different scales";
}

// ---- bilinear resizing: weights have 10 bits, XNNPACK's 11

struct ResizeState final : KernelState {
  bool align_corners = false, half_pixel_centers = false;
  bool by_eleven_bits = false;  // of 8 bits, to a constant size
};

StatusOr<std::unique_ptr<KernelState>> PrepareResize(const Node& node) {
  auto s = std::make_unique<ResizeState>();
  s->align_corners = node.Bool("align_corners");
  s->half_pixel_centers = node.Bool("half_pixel_centers");
  s->by_eleven_bits = node.output_types[0] != Dtype::kInt16 && node.input(1).node->Is("Const");
  return s;
}

constexpr int32_t kOne = 1 << 10;

struct Tap {
  int64_t low, high;
  int32_t place;  // in units of 1 / kOne
};

// Steps are rounded: of thousands of them the last ones end behind the image, which goes on there.
std::vector<Tap> TapsOf(const ResizeState& s, int64_t in, int64_t out) {
  std::vector<Tap> taps;
  auto step = static_cast<int32_t>((kOne * in + out / 2) / out);
  if (s.align_corners && out > 1) {
    step = static_cast<int32_t>((kOne * (in - 1) + (out - 1) / 2) / (out - 1));
  }
  for (int64_t i = 0; i < out; ++i) {
    const int64_t place = s.half_pixel_centers ? i * step + step / 2 - kOne / 2 : i * step;
    const int64_t low = std::clamp<int64_t>(place / kOne, 0, in - 1);
    const int64_t high = std::clamp<int64_t>((place + kOne - 1) / kOne, 0, in - 1);
    taps.push_back({low, high, static_cast<int32_t>(place)});
  }
  return taps;
}

// Of uint8: in float.
struct RealTap {
  int64_t low, high;
  float place;
};

std::vector<RealTap> RealTapsOf(const ResizeState& s, int64_t in, int64_t out) {
  std::vector<RealTap> taps;
  float step = static_cast<float>(in) / static_cast<float>(out);
  if (s.align_corners && out > 1) {
    step = static_cast<float>(in - 1) / static_cast<float>(out - 1);
  }
  for (int64_t i = 0; i < out; ++i) {
    const float place = s.half_pixel_centers ? (static_cast<float>(i) + 0.5f) * step - 0.5f
                                             : static_cast<float>(i) * step;
    const auto low = static_cast<int64_t>(std::floor(place));
    const auto high = static_cast<int64_t>(std::ceil(place));
    taps.push_back(
        {std::clamp<int64_t>(low, 0, in - 1), std::clamp<int64_t>(high, 0, in - 1), place});
  }
  return taps;
}

Status RunResizeReal(OpContext& ctx, const ResizeState& s, Tensor* out) {
  const Tensor& in = ctx.input(0);
  const int64_t in_h = in.dim(1), in_w = in.dim(2), depth = in.dim(3);
  const int64_t out_h = out->dim(1), out_w = out->dim(2);
  const std::vector<RealTap> rows = RealTapsOf(s, in_h, out_h);
  const std::vector<RealTap> columns = RealTapsOf(s, in_w, out_w);
  const uint8_t* x = in.data<uint8_t>();
  uint8_t* y = out->data<uint8_t>();
  for (int64_t line = 0; line < in.dim(0) * out_h; ++line) {
    const RealTap& v = rows[static_cast<size_t>(line % out_h)];
    const uint8_t* image = x + line / out_h * in_h * in_w * depth;
    const float fy = v.place - static_cast<float>(v.low);
    for (int64_t ox = 0; ox < out_w; ++ox) {
      const RealTap& h = columns[static_cast<size_t>(ox)];
      const float fx = h.place - static_cast<float>(h.low);
      const auto at = [&](int64_t r, int64_t c) { return image + (r * in_w + c) * depth; };
      const uint8_t *a = at(v.low, h.low), *b = at(v.high, h.low), *c = at(v.low, h.high),
                    *d = at(v.high, h.high);
      // Shares first, and line by line, as LiteRT's kernel rounds.
      const float of_a = (1 - fy) * (1 - fx), of_b = fy * (1 - fx), of_c = (1 - fy) * fx,
                  of_d = fy * fx;
      for (int64_t i = 0; i < depth; ++i) {
        const float sum = static_cast<float>(a[i]) * of_a + static_cast<float>(c[i]) * of_c +
                          static_cast<float>(b[i]) * of_b + static_cast<float>(d[i]) * of_d;
        y[(line * out_w + ox) * depth + i] =
            static_cast<uint8_t>(std::clamp(sum + 0.5f, 0.0f, 255.0f));
      }
    }
  }
  return OkStatus();
}

// The taps of XNNPACK, whose places are float: the share of `high` in units of 1 / 2^11.
struct ElevenBitTap {
  int64_t low, high;
  int32_t share;
};

std::vector<ElevenBitTap> ElevenBitTapsOf(const ResizeState& s, int64_t in, int64_t out) {
  std::vector<ElevenBitTap> taps;
  const auto last = static_cast<float>(in - 1);
  float step = static_cast<float>(in) / static_cast<float>(out);
  if (s.align_corners && out > 1) step = last / static_cast<float>(out - 1);
  for (int64_t i = 0; i < out; ++i) {
    float place = static_cast<float>(i) * step;
    if (s.half_pixel_centers) {
      place = std::clamp((static_cast<float>(i) + 0.5f) * step - 0.5f, 0.0f, last);
    }
    const int64_t low = std::min<int64_t>(static_cast<int64_t>(place), in - 1);
    const float share = place - static_cast<float>(low);
    taps.push_back(
        {low, std::min(low + 1, in - 1), static_cast<int32_t>(std::lrint(share * 2048))});
  }
  return taps;
}

template <typename T>
void ResizeByElevenBits(const ResizeState& s, const Tensor& in, Tensor* out) {
  const int64_t in_h = in.dim(1), in_w = in.dim(2), depth = in.dim(3);
  const int64_t out_h = out->dim(1), out_w = out->dim(2);
  const auto rows = ElevenBitTapsOf(s, in_h, out_h), columns = ElevenBitTapsOf(s, in_w, out_w);
  const T* x = in.data<T>();
  T* y = out->data<T>();
  ParallelFor(in.dim(0) * out_h, 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const ElevenBitTap& v = rows[static_cast<size_t>(line % out_h)];
      const T* top = x + (line / out_h * in_h + v.low) * in_w * depth;
      const T* bottom = x + (line / out_h * in_h + v.high) * in_w * depth;
      for (int64_t ox = 0; ox < out_w; ++ox) {
        const ElevenBitTap& h = columns[static_cast<size_t>(ox)];
        const T *a = top + h.low * depth, *b = top + h.high * depth;
        const T *c = bottom + h.low * depth, *d = bottom + h.high * depth;
        T* to = y + (line * out_w + ox) * depth;
        for (int64_t i = 0; i < depth; ++i) {
          const int32_t above = a[i] * 2048 + h.share * (b[i] - a[i]);
          const int32_t below = c[i] * 2048 + h.share * (d[i] - c[i]);
          const int32_t sum = above * 2048 + v.share * (below - above);
          to[i] = static_cast<T>((sum + (1 << 21)) >> 22);
        }
      }
    }
  });
}

Status RunResize(OpContext& ctx) {
  const auto& s = ctx.state<ResizeState>();
  const Tensor &in = ctx.input(0), &size = ctx.input(1);
  if (in.rank() != 4 || size.dtype() != Dtype::kInt32 || size.num_elements() != 2) {
    return InvalidArgument("it resizes an image of shape ", in.shape().ToString(), " to ",
                           size.num_elements(), " sizes");
  }
  const int64_t out_h = size.data<int32_t>()[0], out_w = size.data<int32_t>()[1];
  const int64_t in_h = in.dim(1), in_w = in.dim(2), depth = in.dim(3);
  if (out_h < 1 || out_w < 1 || in_h < 1 || in_w < 1) {
    return InvalidArgument("it resizes ", in.shape().ToString(), " to ", out_h, " x ", out_w);
  }
  if (std::max({in_h, in_w, out_h, out_w}) > 1 << 20) {
    return Unimplemented("images of ", std::max({in_h, in_w, out_h, out_w}), " rows");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({in.dim(0), out_h, out_w, depth})));
  if (out->num_elements() == 0) return OkStatus();
  if (s.by_eleven_bits) {
    in.dtype() == Dtype::kUint8 ? ResizeByElevenBits<uint8_t>(s, in, out)
                                : ResizeByElevenBits<int8_t>(s, in, out);
    return OkStatus();
  }
  if (in.dtype() == Dtype::kUint8) return RunResizeReal(ctx, s, out);
  const std::vector<Tap> rows = TapsOf(s, in_h, out_h), columns = TapsOf(s, in_w, out_w);
  VisitNarrow(in.dtype(), [&]<typename T>() {
    const T* x = in.data<T>();
    T* y = out->data<T>();
    ParallelFor(in.dim(0) * out_h, 1, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const Tap& v = rows[static_cast<size_t>(line % out_h)];
        const T* image = x + line / out_h * in_h * in_w * depth;
        for (int64_t ox = 0; ox < out_w; ++ox) {
          const Tap& h = columns[static_cast<size_t>(ox)];
          const auto at = [&](int64_t r, int64_t c) { return image + (r * in_w + c) * depth; };
          const T *a = at(v.low, h.low), *b = at(v.high, h.low), *c = at(v.low, h.high),
                  *d = at(v.high, h.high);
          const int64_t fy = v.place - kOne * v.low, fx = h.place - kOne * h.low;
          T* to = y + (line * out_w + ox) * depth;
          for (int64_t i = 0; i < depth; ++i) {
            const int64_t sum = (kOne - fy) * (kOne - fx) * a[i] + fy * (kOne - fx) * b[i] +
                                (kOne - fy) * fx * c[i] + fy * fx * d[i];
            const int64_t half = sum > 0 ? int64_t{kOne} * kOne / 2 : -int64_t{kOne} * kOne / 2;
            to[i] = static_cast<T>((sum + half) / (int64_t{kOne} * kOne));
          }
        }
      }
    });
  });
  return OkStatus();
}

std::string DeclineResize(const Node& node) {
  if (node.num_inputs() != 2) return absl::StrCat("it has ", node.num_inputs(), " inputs");
  return DeclinePool(node);
}

constexpr Kernel kLiteWindowTable[] = {
    {"tfl.average_pool_2d", "", kAnyType, "lite:average_pool", RunPool<false>, PreparePool,
     DeclinePool},
    {"tfl.max_pool_2d", "", kAnyType, "lite:max_pool", RunPool<true>, PreparePool, DeclinePool},
    {"tfl.resize_bilinear", "", kAnyType, "lite:resize_bilinear", RunResize, PrepareResize,
     DeclineResize},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteWindowKernels = lite::kLiteWindowTable;
}  // namespace smelt
