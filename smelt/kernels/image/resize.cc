// ResizeBilinear, ResizeNearestNeighbor, ResizeBicubic and ResizeArea.
#include "smelt/kernels/image/resize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {

StatusOr<std::unique_ptr<KernelState>> image::ReadResizeState(const Node& node) {
  auto s = std::make_unique<ResizeState>();
  s->align_corners = node.Bool("align_corners");
  s->half_pixel_centers = node.Bool("half_pixel_centers");
  return s;
}

StatusOr<image::ResizeProblem> image::MakeResizeProblem(const Shape& in, const Tensor& size,
                                                        bool align_corners) {
  if (in.rank() != 4) {
    return InvalidArgument("input must be 4-dimensional", in.ToString());
  }
  ResizeProblem p;
  p.batch = in[0];
  p.in_h = in[1];
  p.in_w = in[2];
  p.depth = in[3];
  if (p.depth <= 0) return InvalidArgument("image must have at least one channel");
  if (p.in_h <= 0 || p.in_w <= 0) return InvalidArgument("input image must be of non-zero size");
  if (size.rank() != 1) {
    return InvalidArgument("shape_t must be 1-dimensional", size.shape().ToString());
  }
  if (size.num_elements() != 2) {
    return InvalidArgument("shape_t must have two elements", size.shape().ToString());
  }
  p.out_h = IndexAt(size, 0);
  p.out_w = IndexAt(size, 1);
  if (p.out_h <= 0 || p.out_w <= 0) return InvalidArgument("output dimensions must be positive");
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (p.in_h > kMax || p.in_w > kMax)
    return InvalidArgument("input sizes must be between 0 and max int32");
  p.scale_h = ResizeScale(p.in_h, p.out_h, align_corners);
  p.scale_w = ResizeScale(p.in_w, p.out_w, align_corners);
  ASSIGN_OR_RETURN(p.output, Shape::Make(Dims{p.batch, p.out_h, p.out_w, p.depth}));
  return p;
}

namespace {

using image::CubicTaps;
using image::LinearNeighbors;
using image::MakeCubicTaps;
using image::NearestPixels;
using image::Neighbors;
using image::ResizeProblem;
using image::ResizeScale;
using image::ResizeState;

StatusOr<std::unique_ptr<KernelState>> PrepareResize(const Node& node) {
  if (node.Bool("align_corners") && node.Bool("half_pixel_centers")) {
    return InvalidArgument("If half_pixel_centers is True, align_corners must be False.");
  }
  return image::ReadResizeState(node);
}

int64_t ResizeRowGrain(const ResizeProblem& p) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, p.out_w * p.depth));
}

// With at least so many channels, a call of the vector loop for each pixel pays off.
constexpr int64_t kVectorDepth = 8;

struct BilinearPlan {
  BilinearPlan(const ResizeProblem& problem, const ResizeState& s)
      : p(problem),
        rows(LinearNeighbors(p.out_h, p.in_h, p.scale_h, s.half_pixel_centers)),
        columns(LinearNeighbors(p.out_w, p.in_w, p.scale_w, s.half_pixel_centers)) {}
  ResizeProblem p;
  std::vector<Neighbors> rows, columns;
};

template <typename T>
void BilinearTyped(const BilinearPlan& plan, const T* x, float* y) {
  const ResizeProblem& p = plan.p;
  if (p.out_h == p.in_h && p.out_w == p.in_w) {  // infinities stay themselves
    const int64_t n = p.batch * p.out_h * p.out_w * p.depth;
    std::transform(x, x + n, y, [](T v) { return static_cast<float>(v); });
    return;
  }
  const int64_t row_size = p.in_w * p.depth;
  ParallelFor(p.batch * p.out_h, ResizeRowGrain(p), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Neighbors& v = plan.rows[r % p.out_h];
      const T* image = x + r / p.out_h * p.in_h * row_size;
      const T* top = image + v.low * row_size;
      const T* bottom = image + v.high * row_size;
      float* out = y + r * p.out_w * p.depth;
      for (int64_t c = 0; c < p.out_w; ++c) {
        const Neighbors& h = plan.columns[c];
        const T* tl = top + h.low * p.depth;
        const T* tr = top + h.high * p.depth;
        const T* bl = bottom + h.low * p.depth;
        const T* br = bottom + h.high * p.depth;
        if constexpr (std::is_same_v<T, float>) {
          if (p.depth >= kVectorDepth) {
            const float* corners[] = {tl, tr, bl, br};
            Isa().bilinear(corners, h.weight, v.weight, out, p.depth);
            out += p.depth;
            continue;
          }
        }
        for (int64_t d = 0; d < p.depth; ++d) {
          const auto a = static_cast<float>(tl[d]), b = static_cast<float>(tr[d]);
          const auto e = static_cast<float>(bl[d]), f = static_cast<float>(br[d]);
          const float upper = a + (b - a) * h.weight;
          const float lower = e + (f - e) * h.weight;
          *out++ = upper + (lower - upper) * v.weight;
        }
      }
    }
  });
}

template <typename T>
void BicubicTyped(const ResizeProblem& p, const ResizeState& s, const T* x, float* y) {
  const auto rows = MakeCubicTaps(p.out_h, p.in_h, p.scale_h, s.half_pixel_centers);
  const auto columns = MakeCubicTaps(p.out_w, p.in_w, p.scale_w, s.half_pixel_centers);
  const int64_t row_size = p.in_w * p.depth;
  ParallelFor(p.batch * p.out_h, ResizeRowGrain(p), [&](int64_t begin, int64_t end) {
    // First the four input rows of an output row are joined to one, then each of its pixels takes
    // four pixels of that.
    std::vector<float> wide(row_size), joined(row_size);
    for (int64_t r = begin; r < end; ++r) {
      const CubicTaps& v = rows[r % p.out_h];
      const T* image = x + r / p.out_h * p.in_h * row_size;
      std::ranges::fill(joined, 0.0f);
      for (int i = 0; i < 4; ++i) {
        const T* row = image + v.index[i] * row_size;
        for (int64_t k = 0; k < row_size; ++k) wide[k] = static_cast<float>(row[k]);
        Isa().axpy(wide.data(), joined.data(), row_size, v.weight[i]);
      }
      float* out = y + r * p.out_w * p.depth;
      for (int64_t c = 0; c < p.out_w; ++c) {
        const CubicTaps& h = columns[c];
        for (int64_t d = 0; d < p.depth; ++d) {
          float total = 0;
          for (int j = 0; j < 4; ++j) total += joined[h.index[j] * p.depth + d] * h.weight[j];
          *out++ = total;
        }
      }
    }
  });
}

// The share of input pixels that an output pixel covers: indices may lie beyond the image, where
// the last pixel repeats.
struct AreaSpan {
  int64_t first, last;  // last is exclusive
  float from, to;
};

float AreaShare(const AreaSpan& s, int64_t i) {
  const auto pixel = static_cast<float>(i);
  const float share = std::min(pixel + 1, s.to) - std::max(pixel, s.from);
  return std::max(share, 0.0f);
}

AreaSpan MakeAreaSpan(int64_t i, float scale) {
  AreaSpan s;
  s.from = static_cast<float>(i) * scale;
  s.to = static_cast<float>(i + 1) * scale;
  s.first = static_cast<int64_t>(std::floor(s.from));
  s.last = static_cast<int64_t>(std::ceil(s.to));
  return s;
}

template <typename T>
void AreaTyped(ResizeProblem p, const T* x, float* y) {
  const int64_t row_size = p.in_w * p.depth;
  // align_corners makes the scale of one pixel 0; it is stretched as if without.
  if (p.scale_h == 0) p.scale_h = ResizeScale(p.in_h, p.out_h, false);
  if (p.scale_w == 0) p.scale_w = ResizeScale(p.in_w, p.out_w, false);
  const float norm = 1.0f / (p.scale_h * p.scale_w);
  ParallelFor(p.batch * p.out_h, ResizeRowGrain(p), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const AreaSpan v = MakeAreaSpan(r % p.out_h, p.scale_h);
      const T* image = x + r / p.out_h * p.in_h * row_size;
      float* out = y + r * p.out_w * p.depth;
      for (int64_t c = 0; c < p.out_w; ++c, out += p.depth) {
        const AreaSpan h = MakeAreaSpan(c, p.scale_w);
        std::fill(out, out + p.depth, 0.0f);
        for (int64_t i = v.first; i < v.last; ++i) {
          const float row_share = AreaShare(v, i) * norm;
          const T* row = image + std::clamp<int64_t>(i, 0, p.in_h - 1) * row_size;
          for (int64_t j = h.first; j < h.last; ++j) {
            const float share = AreaShare(h, j) * row_share;
            const T* pixel = row + std::clamp<int64_t>(j, 0, p.in_w - 1) * p.depth;
            for (int64_t d = 0; d < p.depth; ++d) out[d] += static_cast<float>(pixel[d]) * share;
          }
        }
      }
    }
  });
}

// Pixels that are copied.
struct NearestPlan {
  NearestPlan(const ResizeProblem& problem, const ResizeState& s, Dtype dtype)
      : p(problem),
        rows(NearestPixels(p.out_h, p.in_h, p.scale_h, s.align_corners, s.half_pixel_centers)),
        columns(NearestPixels(p.out_w, p.in_w, p.scale_w, s.align_corners, s.half_pixel_centers)),
        pixel(static_cast<int64_t>(DtypeSize(dtype)) * p.depth) {}

  void Run(const void* in, void* out) const {
    const char* x = static_cast<const char*>(in);
    char* y = static_cast<char*>(out);
    ParallelFor(p.batch * p.out_h, ResizeRowGrain(p), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const char* row = x + (r / p.out_h * p.in_h + rows[r % p.out_h]) * p.in_w * pixel;
        char* to = y + r * p.out_w * pixel;
        for (int64_t c = 0; c < p.out_w; ++c) {
          std::memcpy(to + c * pixel, row + columns[c] * pixel, static_cast<size_t>(pixel));
        }
      }
    });
  }

  ResizeProblem p;
  std::vector<int64_t> rows, columns;
  int64_t pixel;  // bytes
};

Status RunResizeNearest(OpContext& ctx) {
  const auto& s = ctx.state<ResizeState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(const ResizeProblem p,
                   image::MakeResizeProblem(in.shape(), ctx.input(1), s.align_corners));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, p.output));
  NearestPlan(p, s, in.dtype()).Run(in.raw(), out->raw());
  return OkStatus();
}

enum class ResizeMethod : uint8_t { kBilinear, kBicubic, kArea };

// The types whose images are resized to floats.
using ResizedTypes =
    CppTypes<float, double, Half, Bfloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t>;

template <typename T>
void ResizeTyped(ResizeMethod method, const ResizeProblem& p, const ResizeState& s,
                 const Tensor& in, float* y) {
  const T* x = in.data<T>();
  switch (method) {
    case ResizeMethod::kBilinear:
      return BilinearTyped(BilinearPlan(p, s), x, y);
    case ResizeMethod::kBicubic:
      return BicubicTyped(p, s, x, y);
    case ResizeMethod::kArea:
      return AreaTyped(p, x, y);
  }
}

Status ResizeTo(OpContext& ctx, ResizeMethod method) {
  const auto& s = ctx.state<ResizeState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(const ResizeProblem p,
                   image::MakeResizeProblem(in.shape(), ctx.input(1), s.align_corners));
  ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateAs(0, Dtype::kFloat, p.output));
  if (out->num_elements() == 0) return OkStatus();
  float* y = out->data<float>();
  if (VisitTypes(ResizedTypes(), in.dtype(),
                 [&]<typename T>() { ResizeTyped<T>(method, p, s, in, y); })) {
    return OkStatus();
  }
  return Unimplemented("resizing images of ", DtypeName(in.dtype()));
}
Status RunResizeBilinear(OpContext& ctx) { return ResizeTo(ctx, ResizeMethod::kBilinear); }
Status RunResizeBicubic(OpContext& ctx) { return ResizeTo(ctx, ResizeMethod::kBicubic); }
Status RunResizeArea(OpContext& ctx) { return ResizeTo(ctx, ResizeMethod::kArea); }

// nullopt: what is not bound, or what the run will refuse.
std::optional<ResizeProblem> ResizeProblemOf(const ResizeState& s, const BindContext& context) {
  const BoundTensor &in = context.inputs[0], &size = context.inputs[1];
  if (size.constant == nullptr || in.shape.num_elements() == 0) {
    DeclineToBind("the size is no constant, or the input is empty");
    return std::nullopt;
  }
  auto p = image::MakeResizeProblem(in.shape, *size.constant, s.align_corners);
  if (!p.ok() || !Fits(context, 2, p->output)) return std::nullopt;
  return *std::move(p);
}

StatusOr<std::unique_ptr<BoundKernel>> BindResizeNearest(const ResizeState& s,
                                                         const BindContext& context) {
  const auto p = ResizeProblemOf(s, context);
  if (!p) return nullptr;
  return BindCall([plan = NearestPlan(*p, s, context.inputs[0].dtype)](
                      const void* const* inputs, void* const* outputs, void* /*scratch*/) {
    plan.Run(inputs[0], outputs[0]);
  });
}

StatusOr<std::unique_ptr<BoundKernel>> BindResizeBilinear(const ResizeState& s,
                                                          const BindContext& context) {
  const auto p = ResizeProblemOf(s, context);
  std::unique_ptr<BoundKernel> bound;
  if (!p) return bound;
  VisitTypes(ResizedTypes(), context.inputs[0].dtype, [&]<typename T>() {
    bound = BindCall([plan = BilinearPlan(*p, s)](const void* const* inputs, void* const* outputs,
                                                  void* /*scratch*/) {
      BilinearTyped(plan, static_cast<const T*>(inputs[0]), static_cast<float*>(outputs[0]));
    });
  });
  return bound;
}

template <ResizeState::BindFunction kBind>
constexpr auto PrepareBoundResize = PrepareBoundBy<ResizeState, PrepareResize, kBind>;

constexpr DtypeSet kResizeTypes =
    kFloatTypes | kHalfTypes | kSignedIntTypes | Types(Dtype::kUint8, Dtype::kUint16);

constexpr Kernel kResizeTable[] = {
    {"ResizeBilinear", "T", kResizeTypes, "image:resize_bilinear", RunResizeBilinear,
     PrepareBoundResize<BindResizeBilinear>},
    {"ResizeNearestNeighbor", "T", kResizeTypes, "image:resize_nearest", RunResizeNearest,
     PrepareBoundResize<BindResizeNearest>},
    {"ResizeBicubic", "T", kResizeTypes, "image:resize_bicubic", RunResizeBicubic, PrepareResize},
    {"ResizeArea", "T", kResizeTypes, "image:resize_area", RunResizeArea, PrepareResize},
};

}  // namespace

extern constinit const std::span<const Kernel> kResizeKernels = kResizeTable;

}  // namespace smelt
