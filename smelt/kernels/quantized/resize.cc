// QuantizedResizeBilinear: the values are resized, the range stays.
#include "smelt/kernels/image/resize.h"

#include "smelt/kernels/quantized/range.h"

namespace smelt {
namespace {

using image::LinearNeighbors;
using image::Neighbors;
using image::ResizeProblem;

// Interpolates between four values in fixed point: weights are multiples of 2^-kBits.
template <typename T>
struct ResizeWeight {
  static constexpr int kBits = sizeof(T) == 1 ? 7 : 30;
  static constexpr int64_t kOne = int64_t{1} << kBits;

  static int64_t Of(float weight) {
    return static_cast<int64_t>(weight * static_cast<float>(kOne));
  }
  // TensorFlow reads steps as floats, which rounds large 32-bit ones.
  static int64_t Step(T v) { return static_cast<int64_t>(static_cast<float>(v)); }
  static T Between(T tl, T tr, T bl, T br, int64_t x, int64_t y) {
    const int64_t top = Step(tl) * kOne + (Step(tr) - Step(tl)) * x;
    const int64_t bottom = Step(bl) * kOne + (Step(br) - Step(bl)) * x;
    const int64_t sum = top + (bottom - top) / kOne * y;
    return static_cast<T>(static_cast<int32_t>((sum + kOne / 2) / kOne));
  }
};
template <>
struct ResizeWeight<float> {
  static float Of(float weight) { return weight; }
  static float Between(float tl, float tr, float bl, float br, float x, float y) {
    const float top = tl + (tr - tl) * x;
    const float bottom = bl + (br - bl) * x;
    return top + (bottom - top) * y;
  }
};

template <typename T>
void ResizeSteps(const ResizeProblem& p, bool half_pixel, const T* x, T* y) {
  using Weight = ResizeWeight<T>;
  const auto rows = LinearNeighbors(p.out_h, p.in_h, p.scale_h, half_pixel);
  const auto columns = LinearNeighbors(p.out_w, p.in_w, p.scale_w, half_pixel);
  const int64_t row_size = p.in_w * p.depth;
  for (int64_t b = 0; b < p.batch; ++b, x += p.in_h * row_size) {
    for (const Neighbors& v : rows) {
      const T *top = x + v.low * row_size, *bottom = x + v.high * row_size;
      for (const Neighbors& h : columns) {
        const int64_t left = h.low * p.depth, right = h.high * p.depth;
        for (int64_t d = 0; d < p.depth; ++d) {
          *y++ = Weight::Between(top[left + d], top[right + d], bottom[left + d], bottom[right + d],
                                 Weight::Of(h.weight), Weight::Of(v.weight));
        }
      }
    }
  }
}

Status RunQuantizedResize(OpContext& ctx) {
  const auto& s = ctx.state<image::ResizeState>();
  for (int i = 2; i < 4; ++i) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument(i == 2 ? "min" : "max", " must be a scalar");
    }
  }
  ASSIGN_OR_RETURN(const ResizeProblem p,
                   image::MakeResizeProblem(ctx.input(0).shape(), ctx.input(1), s.align_corners));
  const float min = ctx.input(2).scalar<float>(), max = ctx.input(3).scalar<float>();
  if (p.output.num_elements() == 0) {
    return Internal("Missing 1-th output from {{node ", ctx.node().name(), "}}");
  }
  quantized::SetRange(ctx, 1, min, max);
  if (p.out_h == p.in_h && p.out_w == p.in_w) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, p.output));
  const auto resize = [&]<typename T>() {
    ResizeSteps(p, s.half_pixel_centers, quantized::Plain<T>(ctx.input(0)),
                quantized::Plain<T>(out));
  };
  if (out->dtype() == Dtype::kFloat) {
    resize.operator()<float>();
  } else if (out->dtype() == Dtype::kQuint8) {
    resize.operator()<uint8_t>();
  } else {
    resize.operator()<int32_t>();
  }
  return OkStatus();
}

constexpr Kernel kQuantizedResizeTable[] = {
    {"QuantizedResizeBilinear", "T", Types(Dtype::kFloat, Dtype::kQuint8, Dtype::kQint32),
     "quantized:resize_bilinear", RunQuantizedResize, image::ReadResizeState},
};

}  // namespace

extern constinit const std::span<const Kernel> kQuantizedResizeKernels = kQuantizedResizeTable;

}  // namespace smelt
