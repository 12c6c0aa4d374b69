// Discrete Fourier transforms over the innermost one, two or three dimensions. Computed in double:
// powers of two by radix 2, other lengths by Bluestein's convolution.
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "smelt/base/parallel.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

using FftValue = std::complex<double>;

FftValue FftRoot(int64_t k, int64_t n, double sign) {
  return std::polar(1.0,
                    sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
}

// In place; n is a power of two; not scaled.
void FftRadix2(std::vector<FftValue>& a, double sign) {
  const size_t n = a.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(a[i], a[j]);
  }
  for (size_t half = 1; half < n; half *= 2) {
    std::vector<FftValue> roots(half);
    for (size_t k = 0; k < half; ++k) {
      roots[k] = FftRoot(static_cast<int64_t>(k), static_cast<int64_t>(2 * half), sign);
    }
    for (size_t start = 0; start < n; start += 2 * half) {
      for (size_t k = 0; k < half; ++k) {
        const FftValue even = a[start + k], odd = a[start + k + half] * roots[k];
        a[start + k] = even + odd;
        a[start + k + half] = even - odd;
      }
    }
  }
}

// Any length; sign -1 forward, +1 inverse; not scaled.
void FftAny(std::vector<FftValue>& a, double sign) {
  const auto n = static_cast<int64_t>(a.size());
  if (n <= 1) return;
  if ((n & (n - 1)) == 0) {
    FftRadix2(a, sign);
    return;
  }
  size_t padded = 1;
  while (padded < static_cast<size_t>(2 * n - 1)) padded *= 2;
  std::vector<FftValue> x(padded), y(padded), chirp(a.size());
  for (int64_t k = 0; k < n; ++k) {
    chirp[k] = FftRoot(k * k % (2 * n), 2 * n, sign);
    x[k] = a[k] * chirp[k];
    y[k] = std::conj(chirp[k]);
    if (k > 0) y[padded - k] = y[k];
  }
  FftRadix2(x, -1);
  FftRadix2(y, -1);
  for (size_t k = 0; k < padded; ++k) x[k] *= y[k];
  FftRadix2(x, 1);
  for (int64_t k = 0; k < n; ++k) a[k] = x[k] / static_cast<double>(padded) * chirp[k];
}

template <typename In, typename Out>
Out FftCast(const In& v) {
  if constexpr (std::is_floating_point_v<Out>) {
    return static_cast<Out>(std::real(v));
  } else {
    using Part = typename Out::value_type;
    return Out(static_cast<Part>(std::real(v)), static_cast<Part>(std::imag(v)));
  }
}

enum class FftKind { kForward, kInverse, kReal, kInverseReal };

// A transform of `rank` dimensions; sizes of those that it lacks are 1. The last dimension of a
// real transform's complex side holds length / 2 + 1 bins.
struct FftPlan {
  FftKind kind;
  int rank;
  std::array<int64_t, 3> length{1, 1, 1}, in{1, 1, 1}, out{1, 1, 1};

  bool inverse() const { return kind == FftKind::kInverse || kind == FftKind::kInverseReal; }
  int64_t points() const { return length[0] * length[1] * length[2]; }
  int64_t in_points() const { return in[0] * in[1] * in[2]; }
  int64_t out_points() const { return out[0] * out[1] * out[2]; }
  // Values of the last dimension that are read.
  int64_t bins() const {
    return std::min(in[2], kind == FftKind::kInverseReal ? length[2] / 2 + 1 : length[2]);
  }
};

// Transforms every line of `block` along one dimension.
void FftAlong(const FftPlan& plan, int axis, std::vector<FftValue>& block) {
  const int64_t n = plan.length[axis];
  int64_t step = 1;
  for (int i = axis + 1; i < 3; ++i) step *= plan.length[i];
  std::vector<FftValue> line(static_cast<size_t>(n));
  for (int64_t start = 0; start < plan.points(); start += n * step) {
    for (int64_t inner = 0; inner < step; ++inner) {
      FftValue* at = block.data() + start + inner;
      for (int64_t k = 0; k < n; ++k) line[k] = at[k * step];
      FftAny(line, plan.inverse() ? 1 : -1);
      for (int64_t k = 0; k < n; ++k) at[k * step] = line[k];
    }
  }
}

template <typename In, typename Out>
void FftBlock(const FftPlan& plan, const In* in, Out* out, std::vector<FftValue>& block) {
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
  for (int axis = 3 - plan.rank; axis < 2; ++axis) FftAlong(plan, axis, block);
  if (plan.kind == FftKind::kInverseReal) {
    // The bins that are not stored mirror those that are.
    for (int64_t row = 0; row < plan.points(); row += n[2]) {
      for (int64_t k = 1; k < n[2] - n[2] / 2; ++k) {
        block[row + n[2] - k] = std::conj(block[row + k]);
      }
    }
  }
  FftAlong(plan, 2, block);
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
  const In* src = static_cast<const In*>(in.raw());
  Out* dst = static_cast<Out*>(out.raw());
  ParallelFor(out.num_elements() / plan.out_points(),
              std::max<int64_t>(1, 4096 / std::max<int64_t>(plan.points(), 1)),
              [&](int64_t begin, int64_t end) {
                std::vector<FftValue> block;
                for (int64_t b = begin; b < end; ++b) {
                  FftBlock(plan, src + b * plan.in_points(), dst + b * plan.out_points(), block);
                }
              });
}

// Lengths of a real transform are stated. TensorFlow wants input enough for them; nothing at all
// stays nothing.
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
