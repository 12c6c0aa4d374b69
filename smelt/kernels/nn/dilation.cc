// Dilation2D (grayscale morphology) and its gradients: the largest sum of pixel and filter under a
// window, and where it came from.
#include <algorithm>
#include <limits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/nn/window.h"

namespace smelt {
namespace {

struct DilationState final : KernelState {
  nn::Padding padding = nn::Padding::kValid;
  int64_t stride_h = 1, stride_w = 1, rate_h = 1, rate_w = 1;
};

StatusOr<std::unique_ptr<KernelState>> PrepareDilation(const Node& node) {
  auto s = std::make_unique<DilationState>();
  const std::vector<int64_t> strides = node.Ints("strides"), rates = node.Ints("rates");
  if (strides.size() != 4) {
    return InvalidArgument("Sliding window stride field must specify 4 dimensions");
  }
  if (strides[0] != 1 || strides[3] != 1) {
    return Unimplemented("Stride is only supported across spatial dimensions.");
  }
  if (rates.size() != 4) {
    return InvalidArgument("Input stride (atrous rate) field must specify 4 dimensions");
  }
  if (rates[0] != 1 || rates[3] != 1) {
    return Unimplemented("Rate is only supported across spatial dimensions.");
  }
  ASSIGN_OR_RETURN(s->padding, nn::ParsePadding(node.String("padding")));
  s->stride_h = strides[1];
  s->stride_w = strides[2];
  s->rate_h = rates[1];
  s->rate_w = rates[2];
  return s;
}

struct DilationProblem {
  int64_t batch, in_h, in_w, depth, filter_h, filter_w;
  nn::WindowSpan rows, columns;
};

StatusOr<DilationProblem> MakeDilationProblem(const OpContext& ctx) {
  const auto& s = ctx.state<DilationState>();
  const Tensor& in = ctx.input(0);
  const Tensor& filter = ctx.input(1);
  if (in.rank() != 4) return InvalidArgument("input must be 4-dimensional", in.shape().ToString());
  if (filter.rank() != 3) {
    return InvalidArgument("filter must be 3-dimensional: ", filter.shape().ToString());
  }
  DilationProblem p{in.dim(0),     in.dim(1),     in.dim(2), in.dim(3),
                    filter.dim(0), filter.dim(1), {},        {}};
  if (filter.dim(2) != p.depth) {
    return InvalidArgument("input and filter must have the same depth: ", p.depth, " vs ",
                           filter.dim(2));
  }
  ASSIGN_OR_RETURN(p.rows, nn::SpanOf(p.in_h, p.filter_h, s.rate_h, s.stride_h, s.padding, 0, 0));
  ASSIGN_OR_RETURN(p.columns,
                   nn::SpanOf(p.in_w, p.filter_w, s.rate_w, s.stride_w, s.padding, 0, 0));
  return p;
}

template <typename T>
T LeastValue() {
  if constexpr (std::is_same_v<T, Half>) {
    return T(-65504.0f);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return T(-3.38953139e38f);
  } else {
    return std::numeric_limits<T>::lowest();
  }
}

// The largest sum at one output position; offsets into image and filter of where it was found
// first.
template <typename T>
struct DilationPeak {
  T value;
  int64_t pixel = -1, tap = -1;  // -1: no sum above the least value
};

template <typename T>
DilationPeak<T> FindPeak(const DilationProblem& p, const DilationState& s, const T* image,
                         const T* filter, int64_t y, int64_t x, int64_t c) {
  DilationPeak<T> peak{LeastValue<T>()};
  const int64_t top = y * s.stride_h - p.rows.before, left = x * s.stride_w - p.columns.before;
  for (int64_t i = 0; i < p.filter_h; ++i) {
    const int64_t row = top + i * s.rate_h;
    if (row < 0 || row >= p.in_h) continue;
    for (int64_t j = 0; j < p.filter_w; ++j) {
      const int64_t column = left + j * s.rate_w;
      if (column < 0 || column >= p.in_w) continue;
      const int64_t pixel = (row * p.in_w + column) * p.depth + c;
      const int64_t tap = (i * p.filter_w + j) * p.depth + c;
      const T sum = AddValues(image[pixel], filter[tap]);
      if (LessThan(peak.value, sum)) peak = {sum, pixel, tap};
    }
  }
  return peak;
}

Status RunDilation(OpContext& ctx) {
  const auto& s = ctx.state<DilationState>();
  ASSIGN_OR_RETURN(const DilationProblem p, MakeDilationProblem(ctx));
  ASSIGN_OR_RETURN(const Shape shape,
                   Shape::Make(Dims{p.batch, p.rows.out, p.columns.out, p.depth}));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  const bool known = VisitReal(out->dtype(), [&]<typename T>() {
    ParallelFor(p.batch * p.rows.out, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* image = ctx.input(0).data<T>() + r / p.rows.out * p.in_h * p.in_w * p.depth;
        T* to = out->data<T>() + r * p.columns.out * p.depth;
        for (int64_t i = 0; i < p.columns.out * p.depth; ++i) {
          to[i] = FindPeak(p, s, image, ctx.input(1).data<T>(), r % p.rows.out, i / p.depth,
                           i % p.depth)
                      .value;
        }
      }
    });
  });
  return known ? OkStatus() : Unimplemented("dilation of type ", DtypeName(out->dtype()));
}

template <bool kToFilter>
Status RunDilationGrad(OpContext& ctx) {
  const auto& s = ctx.state<DilationState>();
  const Tensor& in = ctx.input(0);
  const Tensor& filter = ctx.input(1);
  const Tensor& grad = ctx.input(2);
  ASSIGN_OR_RETURN(const DilationProblem p, MakeDilationProblem(ctx));
  if (grad.rank() != 4) {
    return InvalidArgument("out_backprop must be 4-dimensional", grad.shape().ToString());
  }
  if (!(grad.shape() == Shape({p.batch, p.rows.out, p.columns.out, p.depth}))) {
    return InvalidArgument("out_backprop has incompatible size.");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, kToFilter ? filter.shape() : in.shape()));
  if (out->num_elements() == 0) return OkStatus();
  std::memset(out->raw(), 0, out->bytes());
  const bool known = VisitReal(out->dtype(), [&]<typename T>() {
    const T* from = grad.data<T>();
    const int64_t image = p.in_h * p.in_w * p.depth;
    for (int64_t i = 0; i < grad.num_elements(); ++i) {
      const int64_t c = i % p.depth, at = i / p.depth, x = at % p.columns.out;
      const int64_t y = at / p.columns.out % p.rows.out, b = at / p.columns.out / p.rows.out;
      const auto peak = FindPeak(p, s, in.data<T>() + b * image, filter.data<T>(), y, x, c);
      // Without a peak, the first pixel of the window that lies in the image, or the first tap.
      int64_t place = kToFilter ? peak.tap : peak.pixel;
      if (place < 0) {
        const int64_t top = std::max<int64_t>(y * s.stride_h - p.rows.before, 0);
        const int64_t left = std::max<int64_t>(x * s.stride_w - p.columns.before, 0);
        if (!kToFilter && (top >= p.in_h || left >= p.in_w)) continue;
        place = kToFilter ? c : (top * p.in_w + left) * p.depth + c;
      }
      T& to = out->data<T>()[place + (kToFilter ? 0 : b * image)];
      to = AddValues(to, from[i]);
    }
  });
  return known ? OkStatus() : Unimplemented("dilation of type ", DtypeName(out->dtype()));
}

constexpr Kernel kDilationTable[] = {
    {"Dilation2D", "T", kRealTypes, "nn:dilation", RunDilation, PrepareDilation},
    {"Dilation2DBackpropInput", "T", kRealTypes, "nn:dilation", RunDilationGrad<false>,
     PrepareDilation},
    {"Dilation2DBackpropFilter", "T", kRealTypes, "nn:dilation", RunDilationGrad<true>,
     PrepareDilation},
};

}  // namespace

extern constinit const std::span<const Kernel> kDilationKernels = kDilationTable;

}  // namespace smelt
