// Discrete Fourier transforms over the innermost dimension. Computed in double: powers of two by
// radix 2, other lengths by Bluestein's convolution.
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

// `length` is that of the transform; rows of the input are cut or padded with zeros to what it
// reads.
template <typename In, typename Out>
void FftRows(const Tensor& in, Tensor& out, FftKind kind, int64_t length) {
  const int64_t in_row = in.shape().back(), out_row = out.shape().back();
  const int64_t rows = out_row == 0 ? 0 : out.num_elements() / out_row;
  const In* src = static_cast<const In*>(in.raw());
  Out* dst = static_cast<Out*>(out.raw());
  const bool inverse = kind == FftKind::kInverse || kind == FftKind::kInverseReal;
  ParallelFor(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(length, 1)),
              [&](int64_t begin, int64_t end) {
                std::vector<FftValue> a;
                for (int64_t r = begin; r < end; ++r) {
                  a.assign(static_cast<size_t>(length), FftValue());
                  const int64_t bins = kind == FftKind::kInverseReal ? length / 2 + 1 : length;
                  for (int64_t k = 0; k < std::min(in_row, bins); ++k) {
                    a[k] = FftCast<In, FftValue>(src[r * in_row + k]);
                  }
                  if (kind == FftKind::kInverseReal) {
                    for (int64_t k = 1; k < length - length / 2; ++k)
                      a[length - k] = std::conj(a[k]);
                  }
                  FftAny(a, inverse ? 1 : -1);
                  const double scale = inverse ? 1.0 / static_cast<double>(length) : 1.0;
                  for (int64_t k = 0; k < out_row; ++k) {
                    dst[r * out_row + k] = FftCast<FftValue, Out>(a[k] * scale);
                  }
                }
              });
}

Status RunFft(OpContext& ctx, FftKind kind) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) {
    return InvalidArgument("Input must have rank of at least 1 but got: ", in.shape().ToString());
  }
  Shape shape = in.shape();
  int64_t length = in.shape().back();
  if (kind == FftKind::kReal || kind == FftKind::kInverseReal) {
    const Tensor& wanted = ctx.input(1);
    if (wanted.rank() != 1 || wanted.dim(0) != 1) {
      return InvalidArgument("fft_length must have shape [1]");
    }
    length = IndexAt(wanted, 0);
    if (length < 0) return InvalidArgument("fft_length[0] must be >= 0, but got: ", length);
    // TensorFlow wants input enough for the transform; nothing at all stays nothing.
    const int64_t needed = kind == FftKind::kReal ? length : length / 2 + 1;
    if (in.shape().back() != 0 && in.shape().back() < needed) {
      return InvalidArgument("Input dimension ", in.rank() - 1, " must have length of at least ",
                             needed, " but got: ", in.shape().back());
    }
    shape.Set(in.rank() - 1, kind == FftKind::kReal ? length / 2 + 1 : length);
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  if (length == 0 || in.num_elements() == 0) {
    std::memset(out->raw(), 0, out->bytes());
    return OkStatus();
  }
  const bool wide = in.dtype() == Dtype::kDouble || in.dtype() == Dtype::kComplex128;
  switch (kind) {
    case FftKind::kReal:
      wide ? FftRows<double, std::complex<double>>(in, *out, kind, length)
           : FftRows<float, std::complex<float>>(in, *out, kind, length);
      break;
    case FftKind::kInverseReal:
      wide ? FftRows<std::complex<double>, double>(in, *out, kind, length)
           : FftRows<std::complex<float>, float>(in, *out, kind, length);
      break;
    default:
      wide ? FftRows<std::complex<double>, std::complex<double>>(in, *out, kind, length)
           : FftRows<std::complex<float>, std::complex<float>>(in, *out, kind, length);
  }
  return OkStatus();
}

Status RunForwardFft(OpContext& ctx) { return RunFft(ctx, FftKind::kForward); }
Status RunInverseFft(OpContext& ctx) { return RunFft(ctx, FftKind::kInverse); }
Status RunRealFft(OpContext& ctx) { return RunFft(ctx, FftKind::kReal); }
Status RunInverseRealFft(OpContext& ctx) { return RunFft(ctx, FftKind::kInverseReal); }

// The real side and the complex side must be of one width.
std::string DeclineMixedWidth(const Node& node) {
  const bool wide = node.Type("Treal", Dtype::kFloat) == Dtype::kDouble;
  const bool complex_wide = node.Type("Tcomplex", Dtype::kComplex64) == Dtype::kComplex128;
  return wide == complex_wide ? "" : "wants Treal and Tcomplex of one width";
}

constexpr Kernel kFftTable[] = {
    {"FFT", "Tcomplex", kComplexTypes, "reference:fft", RunForwardFft},
    {"IFFT", "Tcomplex", kComplexTypes, "reference:fft", RunInverseFft},
    {"RFFT", "Tcomplex", kComplexTypes, "reference:fft", RunRealFft, nullptr, DeclineMixedWidth},
    {"IRFFT", "Tcomplex", kComplexTypes, "reference:fft", RunInverseRealFft, nullptr,
     DeclineMixedWidth},
};

}  // namespace

extern constinit const std::span<const Kernel> kFftKernels = kFftTable;

}  // namespace smelt
