// Discrete Fourier transforms over the innermost one, two or three dimensions. Lines whose length
// has small prime factors only are transformed many at once (lines.h), others by Bluestein's
// convolution. Single lines of float numbers are computed in float, as TensorFlow does, all else in
// double.
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "smelt/base/parallel.h"
#include "smelt/kernels/fft/float_lines.h"
#include "smelt/kernels/fft/lines.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

using fft::FftKind, fft::FftPlan;
using FftValue = std::complex<double>;

FftValue FftRoot(int64_t k, int64_t n, double sign) {
  return std::polar(1.0,
                    sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
}

// In place; n is a power of two; not scaled. `roots` are e^(sign 2 pi i k / n) for k < n / 2.
void FftRadix2(std::vector<FftValue>& a, const std::vector<FftValue>& roots) {
  const size_t n = a.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(a[i], a[j]);
  }
  for (size_t half = 1; half < n; half *= 2) {
    const size_t stride = n / (2 * half);
    for (size_t start = 0; start < n; start += 2 * half) {
      for (size_t k = 0; k < half; ++k) {
        const FftValue even = a[start + k], odd = a[start + k + half] * roots[k * stride];
        a[start + k] = even + odd;
        a[start + k + half] = even - odd;
      }
    }
  }
}

// A transform of any length as a convolution (Bluestein); sign -1 forward, +1 inverse; not scaled.
class FftChirp {
 public:
  FftChirp(int64_t n, double sign) : n_(n), chirp_(static_cast<size_t>(n)) {
    size_t padded = 1;
    while (padded < static_cast<size_t>(2 * n - 1)) padded *= 2;
    for (size_t k = 0; k < padded / 2; ++k) {
      forward_.push_back(FftRoot(static_cast<int64_t>(k), static_cast<int64_t>(padded), -1));
      backward_.push_back(std::conj(forward_.back()));
    }
    kernel_.resize(padded);
    for (int64_t k = 0; k < n; ++k) {
      chirp_[k] = FftRoot(k * k % (2 * n), 2 * n, sign);
      kernel_[k] = std::conj(chirp_[k]);
      if (k > 0) kernel_[padded - k] = kernel_[k];
    }
    FftRadix2(kernel_, forward_);
  }

  void Run(std::vector<FftValue>& a) const {
    std::vector<FftValue> x(kernel_.size());
    for (int64_t k = 0; k < n_; ++k) x[k] = a[k] * chirp_[k];
    FftRadix2(x, forward_);
    for (size_t k = 0; k < x.size(); ++k) x[k] *= kernel_[k];
    FftRadix2(x, backward_);
    for (int64_t k = 0; k < n_; ++k) a[k] = x[k] / static_cast<double>(x.size()) * chirp_[k];
  }

 private:
  int64_t n_;
  std::vector<FftValue> chirp_, kernel_, forward_, backward_;
};

template <typename In, typename Out>
Out FftCast(const In& v) {
  if constexpr (std::is_floating_point_v<Out>) {
    return static_cast<Out>(std::real(v));
  } else {
    using Part = typename Out::value_type;
    return Out(static_cast<Part>(std::real(v)), static_cast<Part>(std::imag(v)));
  }
}

// How lines along one dimension are transformed.
struct FftAxis {
  std::shared_ptr<const fft::LinePlan<double>> plan;  // nullptr: `chirp` is used
  std::unique_ptr<FftChirp> chirp;

  FftAxis(int64_t n, bool inverse) {
    if (fft::LinePlan<double>::Suits(n)) {
      plan = fft::LinePlan<double>::Of(n);
    } else {
      chirp = std::make_unique<FftChirp>(n, inverse ? 1 : -1);
    }
  }
};

// Transforms every line of `block` along one dimension.
void FftAlong(const FftPlan& plan, const FftAxis& how, int axis, std::vector<FftValue>& block) {
  const int64_t n = plan.length[axis];
  if (n <= 1) return;
  int64_t step = 1;
  for (int i = axis + 1; i < 3; ++i) step *= plan.length[i];
  const int64_t lines = plan.points() / n;
  const auto first = [&](int64_t line) { return line / step * n * step + line % step; };
  if (how.chirp != nullptr) {
    std::vector<FftValue> line(static_cast<size_t>(n));
    for (int64_t l = 0; l < lines; ++l) {
      FftValue* at = block.data() + first(l);
      for (int64_t k = 0; k < n; ++k) line[k] = at[k * step];
      how.chirp->Run(line);
      for (int64_t k = 0; k < n; ++k) at[k * step] = line[k];
    }
    return;
  }
  const int64_t lanes = IsaFft<double>().lanes;
  std::vector<double> a(how.plan->buffer_size()), b(a.size()), scratch(how.plan->scratch_size());
  // The inverse exchanges real and imaginary parts on both sides.
  const int64_t re = plan.inverse() ? lanes : 0, im = lanes - re;
  for (int64_t l = 0; l < lines; l += lanes) {
    const int64_t count = std::min(lanes, lines - l);
    for (int64_t lane = 0; lane < count; ++lane) {
      const FftValue* at = block.data() + first(l + lane);
      double* to = a.data() + lane;
      for (int64_t k = 0; k < n; ++k, to += 2 * lanes) {
        to[re] = at[k * step].real();
        to[im] = at[k * step].imag();
      }
    }
    const double* from = how.plan->Run(a.data(), b.data(), scratch.data());
    for (int64_t lane = 0; lane < count; ++lane) {
      FftValue* at = block.data() + first(l + lane);
      const double* value = from + lane;
      for (int64_t k = 0; k < n; ++k, value += 2 * lanes) {
        at[k * step] = FftValue(value[re], value[im]);
      }
    }
  }
}

template <typename In, typename Out>
void FftBlock(const FftPlan& plan, std::span<const FftAxis> axes, const In* in, Out* out,
              std::vector<FftValue>& block) {
  const auto& n = plan.length;
  block.assign(static_cast<size_t>(plan.points()), FftValue());
  const auto row_of = [](const std::array<int64_t, 3>& sizes, int64_t i, int64_t j) {
    return (i * sizes[1] + j) * sizes[2];
  };
  for (int64_t i = 0; i < n[0]; ++i) {
    for (int64_t j = 0; j < n[1]; ++j) {
      for (int64_t k = 0; k < plan.bins(); ++k) {
        block[row_of(n, i, j) + k] = FftCast<In, FftValue>(in[row_of(plan.in, i, j) + k]);
      }
    }
  }
  for (int axis = 3 - plan.rank; axis < 2; ++axis) FftAlong(plan, axes[axis], axis, block);
  if (plan.kind == FftKind::kInverseReal) {
    // The bins that are not stored mirror those that are.
    for (int64_t row = 0; row < plan.points(); row += n[2]) {
      for (int64_t k = 1; k < n[2] - n[2] / 2; ++k) {
        block[row + n[2] - k] = std::conj(block[row + k]);
      }
    }
  }
  FftAlong(plan, axes[2], 2, block);
  if (plan.kind == FftKind::kReal && plan.rank == 1 && n[2] > 0) {
    block[0].imag(0);
    if (n[2] % 2 == 0) block[n[2] / 2].imag(0);
  }
  const double scale = plan.inverse() ? 1.0 / static_cast<double>(plan.points()) : 1.0;
  for (int64_t i = 0; i < n[0]; ++i) {
    for (int64_t j = 0; j < n[1]; ++j) {
      for (int64_t k = 0; k < plan.out[2]; ++k) {
        out[row_of(plan.out, i, j) + k] =
            FftCast<FftValue, Out>(block[row_of(n, i, j) + k] * scale);
      }
    }
  }
}

template <typename In, typename Out>
void FftBlocks(const FftPlan& plan, const Tensor& in, Tensor& out) {
  const int64_t blocks = out.num_elements() / plan.out_points();
  if constexpr (std::is_same_v<In, float> || std::is_same_v<In, std::complex<float>>) {
    if (const auto lines = fft::FloatLines::Of(plan)) {
      return lines->Run(static_cast<const float*>(in.raw()), static_cast<float*>(out.raw()),
                        blocks);
    }
  }
  const In* src = static_cast<const In*>(in.raw());
  Out* dst = static_cast<Out*>(out.raw());
  std::vector<FftAxis> axes;
  for (const int64_t n : plan.length) axes.emplace_back(n, plan.inverse());
  ParallelFor(blocks, std::max<int64_t>(1, 4096 / std::max<int64_t>(plan.points(), 1)),
              [&](int64_t begin, int64_t end) {
                std::vector<FftValue> block;
                for (int64_t b = begin; b < end; ++b) {
                  FftBlock(plan, std::span<const FftAxis>(axes), src + b * plan.in_points(),
                           dst + b * plan.out_points(), block);
                }
              });
}

// Reads fft_length, the lengths of a real transform. As in TensorFlow the input must be at least as
// long in each dimension, or empty there.
Status ReadFftLengths(const Tensor& in, const Tensor& wanted, FftPlan* plan) {
  if (wanted.rank() != 1 || wanted.dim(0) != plan->rank) {
    return InvalidArgument("fft_length must have shape [", plan->rank, "]");
  }
  for (int i = 0; i < plan->rank; ++i) {
    const int64_t length = IndexAt(wanted, i);
    if (length < 0) return InvalidArgument("fft_length[", i, "] must >= 0, but got: ", length);
    const bool halved = plan->kind == FftKind::kInverseReal && i == plan->rank - 1;
    const int64_t needed = halved ? length / 2 + 1 : length;
    const int dim = in.rank() - plan->rank + i;
    if (in.dim(dim) != 0 && in.dim(dim) < needed) {
      return InvalidArgument("Input dimension ", dim, " must have length of at least ", needed,
                             " but got: ", in.dim(dim));
    }
    plan->length[3 - plan->rank + i] = length;
  }
  return OkStatus();
}

bool IsWideFft(Dtype t) { return t == Dtype::kDouble || t == Dtype::kComplex128; }

template <FftKind kKind, int kRank>
Status RunFft(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < kRank) {
    return InvalidArgument("Input must have rank of at least ", kRank,
                           " but got: ", in.shape().ToString());
  }
  FftPlan plan{kKind, kRank};
  for (int i = 0; i < kRank; ++i) plan.in[3 - kRank + i] = in.dim(in.rank() - kRank + i);
  plan.length = plan.in;
  constexpr bool kRealSide = kKind == FftKind::kReal || kKind == FftKind::kInverseReal;
  if (kRealSide) RETURN_IF_ERROR(ReadFftLengths(in, ctx.input(1), &plan));
  plan.out = plan.length;
  if (kKind == FftKind::kReal && plan.length[2] > 0) plan.out[2] = plan.length[2] / 2 + 1;
  // One row transformed as a plane is a line: STFTs of TensorFlow Lite are made of those.
  if (plan.points() == plan.length[2] && plan.in_points() == plan.in[2]) plan.rank = 1;
  const bool wide = IsWideFft(in.dtype());
  if (wide != IsWideFft(ctx.output_type(0))) {
    return InvalidArgument("Wrong types for ", kKind == FftKind::kReal ? "forward" : "backward",
                           " real FFT: in=", static_cast<int>(in.dtype()),
                           " out=", static_cast<int>(ctx.output_type(0)));
  }
  Dims dims(in.shape().dims().begin(), in.shape().dims().end() - kRank);
  dims.insert(dims.end(), plan.out.end() - kRank, plan.out.end());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  if (plan.points() == 0 || in.num_elements() == 0) {
    std::memset(out->raw(), 0, out->bytes());
    return OkStatus();
  }
  if constexpr (kKind == FftKind::kReal) {
    wide ? FftBlocks<double, std::complex<double>>(plan, in, *out)
         : FftBlocks<float, std::complex<float>>(plan, in, *out);
  } else if constexpr (kKind == FftKind::kInverseReal) {
    wide ? FftBlocks<std::complex<double>, double>(plan, in, *out)
         : FftBlocks<std::complex<float>, float>(plan, in, *out);
  } else {
    wide ? FftBlocks<std::complex<double>, std::complex<double>>(plan, in, *out)
         : FftBlocks<std::complex<float>, std::complex<float>>(plan, in, *out);
  }
  return OkStatus();
}

constexpr Kernel kFftTable[] = {
    {"FFT", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kForward, 1>},
    {"FFT2D", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kForward, 2>},
    {"FFT3D", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kForward, 3>},
    {"IFFT", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kInverse, 1>},
    {"IFFT2D", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kInverse, 2>},
    {"IFFT3D", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kInverse, 3>},
    {"RFFT", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kReal, 1>},
    {"RFFT2D", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kReal, 2>},
    {"RFFT3D", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kReal, 3>},
    {"IRFFT", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kInverseReal, 1>},
    {"IRFFT2D", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kInverseReal, 2>},
    {"IRFFT3D", "Tcomplex", kComplexTypes, "reference:fft", RunFft<FftKind::kInverseReal, 3>},
};

}  // namespace

extern constinit const std::span<const Kernel> kFftKernels = kFftTable;

}  // namespace smelt
