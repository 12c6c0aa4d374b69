// ImageProjectiveTransform: each output pixel comes from where a projection sends it.
#include <algorithm>
#include <cmath>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/kernel.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

enum class BeyondEdge : uint8_t { kReflect, kWrap, kConstant, kNearest };

struct ProjectState final : KernelState {
  bool bilinear = false;
  BeyondEdge beyond = BeyondEdge::kConstant;
  Status known =
      OkStatus();  // whether interpolation and mode are; TensorFlow looks at inputs first
};

StatusOr<std::unique_ptr<KernelState>> PrepareProject(const Node& node) {
  auto s = std::make_unique<ProjectState>();
  const std::string method = node.String("interpolation");
  if (method != "NEAREST" && method != "BILINEAR") {
    s->known =
        InvalidArgument("Invalid interpolation ", method, ". Supported types: NEAREST, BILINEAR");
    return s;
  }
  s->bilinear = method == "BILINEAR";
  const std::string mode = node.String("fill_mode", "CONSTANT");
  if (mode == "REFLECT") {
    s->beyond = BeyondEdge::kReflect;
  } else if (mode == "WRAP") {
    s->beyond = BeyondEdge::kWrap;
  } else if (mode == "NEAREST") {
    s->beyond = BeyondEdge::kNearest;
  } else if (mode != "CONSTANT") {
    s->known = InvalidArgument("Invalid mode ", mode,
                               ". Supported types: REFLECT, WRAP, CONSTANT, NEAREST");
  }
  return s;
}

// x / size, rounded toward zero; at most 1e12, so that the cast is defined. REQUIRES: x >= 0.
int64_t WholeTimes(float x, int64_t size) {
  return static_cast<int64_t>(std::min(x / static_cast<float>(size), 1e12f));
}

// Brings a coordinate into [0, size - 1], except with kConstant. NaN stays.
float FoldCoordinate(BeyondEdge beyond, float x, int64_t size) {
  if (beyond == BeyondEdge::kConstant) return x;
  if (size <= 1) return std::isnan(x) ? x : 0;
  const auto last = static_cast<float>(size - 1);
  if (beyond != BeyondEdge::kNearest && (x < 0 || x > last)) {
    if (beyond == BeyondEdge::kReflect) {
      const int64_t period = 2 * size;
      if (x < 0) {
        x = static_cast<float>(period * WholeTimes(-x, period)) + x;
        x = x < static_cast<float>(-size) ? x + static_cast<float>(period) : -x - 1;
      } else {
        x -= static_cast<float>(period * WholeTimes(x, period));
        if (x >= static_cast<float>(size)) x = static_cast<float>(period) - x - 1;
      }
    } else if (x < 0) {
      x += static_cast<float>(size * (WholeTimes(-x, size - 1) + 1));
    } else {
      x -= static_cast<float>(size * WholeTimes(x, size - 1));
    }
  }
  return std::isnan(x) ? x : std::clamp(x, 0.0f, last);
}

template <typename T>
T PixelOf(float v) {
  if constexpr (std::is_integral_v<T>) {
    // What T cannot hold has no specified result; this only avoids an undefined cast.
    return std::abs(v) < 9e18f ? static_cast<T>(static_cast<int64_t>(v)) : T(0);
  } else {
    return T(v);
  }
}

template <typename T>
struct ProjectedImage {
  const T* pixels;
  int64_t height, width, depth;
  T fill;

  float At(float y, float x, int64_t c) const {
    const bool inside =
        y >= 0 && x >= 0 && y < static_cast<float>(height) && x < static_cast<float>(width);
    if (!inside) return static_cast<float>(fill);
    return static_cast<float>(
        pixels[(static_cast<int64_t>(y) * width + static_cast<int64_t>(x)) * depth + c]);
  }
  T Nearest(float y, float x, int64_t c) const {
    y = std::round(y);
    x = std::round(x);
    const bool inside =
        y >= 0 && x >= 0 && y < static_cast<float>(height) && x < static_cast<float>(width);
    if (!inside) return fill;
    return pixels[(static_cast<int64_t>(y) * width + static_cast<int64_t>(x)) * depth + c];
  }
  T Bilinear(float y, float x, int64_t c) const {
    const float y0 = std::floor(y), x0 = std::floor(x), y1 = y0 + 1, x1 = x0 + 1;
    const float upper = (x1 - x) * At(y0, x0, c) + (x - x0) * At(y0, x1, c);
    const float lower = (x1 - x) * At(y1, x0, c) + (x - x0) * At(y1, x1, c);
    return PixelOf<T>((y1 - y) * upper + (y - y0) * lower);
  }
};

template <typename T>
void ProjectRow(const ProjectState& s, const ProjectedImage<T>& image, const float* m, int64_t row,
                int64_t width, T* out) {
  const auto y = static_cast<float>(row);
  for (int64_t column = 0; column < width; ++column, out += image.depth) {
    const auto x = static_cast<float>(column);
    const float w = m[6] * x + m[7] * y + 1.0f;
    if (w == 0) {
      std::fill_n(out, image.depth, image.fill);
      continue;
    }
    const float in_x = FoldCoordinate(s.beyond, (m[0] * x + m[1] * y + m[2]) / w, image.width);
    const float in_y = FoldCoordinate(s.beyond, (m[3] * x + m[4] * y + m[5]) / w, image.height);
    for (int64_t c = 0; c < image.depth; ++c) {
      out[c] = s.bilinear ? image.Bilinear(in_y, in_x, c) : image.Nearest(in_y, in_x, c);
    }
  }
}

template <typename T>
void ProjectImages(const OpContext& ctx, Tensor* out) {
  const auto& s = ctx.state<ProjectState>();
  const Tensor& in = ctx.input(0);
  const Tensor& transforms = ctx.input(1);
  const float fill = ctx.num_inputs() == 4 ? ctx.input(3).scalar<float>() : 0;
  const int64_t rows = out->dim(1), width = out->dim(2), depth = out->dim(3);
  const int64_t image = in.dim(1) * in.dim(2) * depth;
  ParallelFor(out->dim(0) * rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, width * depth)),
              [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                  const int64_t b = r / rows;
                  const ProjectedImage<T> from{in.data<T>() + b * image, in.dim(1), in.dim(2),
                                               depth, PixelOf<T>(fill)};
                  const float* m = transforms.data<float>() + (transforms.dim(0) == 1 ? 0 : 8 * b);
                  ProjectRow(s, from, m, r % rows, width, out->data<T>() + r * width * depth);
                }
              });
}

Status RunProject(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  const Tensor& transforms = ctx.input(1);
  const Tensor& size = ctx.input(2);
  if (in.rank() != 4) return InvalidArgument("Input images must have rank 4");
  if (transforms.rank() != 2 || transforms.dim(1) != 8 ||
      (transforms.dim(0) != in.dim(0) && transforms.dim(0) != 1)) {
    return InvalidArgument("Input transform should be num_images x 8 or 1 x 8");
  }
  if (size.rank() != 1) {
    return InvalidArgument("output shape must be 1-dimensional", size.shape().ToString());
  }
  if (size.num_elements() != 2) {
    return InvalidArgument("output shape must have two elements", size.shape().ToString());
  }
  const int64_t height = IndexAt(size, 0), width = IndexAt(size, 1);
  if (height <= 0 || width <= 0) return InvalidArgument("output dimensions must be positive");
  if (ctx.num_inputs() == 4 && ctx.input(3).rank() != 0) {
    return InvalidArgument("fill_value must be a scalar", ctx.input(3).shape().ToString());
  }
  RETURN_IF_ERROR(ctx.state<ProjectState>().known);
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(Dims{in.dim(0), height, width, in.dim(3)}));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  using Types = CppTypes<float, double, Half, Bfloat16, uint8_t, int32_t, int64_t>;
  if (VisitTypes(Types(), in.dtype(), [&]<typename T>() { ProjectImages<T>(ctx, out); })) {
    return OkStatus();
  }
  return Unimplemented("projecting images of ", DtypeName(in.dtype()));
}

constexpr DtypeSet kProjectTypes =
    kFloatTypes | kHalfTypes | Types(Dtype::kUint8, Dtype::kInt32, Dtype::kInt64);

constexpr Kernel kProjectTable[] = {
    {"ImageProjectiveTransformV2", "dtype", kProjectTypes, "image:project", RunProject,
     PrepareProject},
};

}  // namespace

extern constinit const std::span<const Kernel> kProjectKernels = kProjectTable;

}  // namespace smelt
