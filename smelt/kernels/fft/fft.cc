// Discrete Fourier transforms over the innermost one, two or three dimensions. Lines whose length
// has small prime factors only are transformed many at once (lines.h), others by Bluestein's
// convolution. Single lines of float numbers are computed in float, as TensorFlow does, all else in
// double.
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <optional>
#include <vector>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/decline_to_bind.h"
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

// The transform of `blocks` blocks, whose roots are made once. Immutable, so thread safe.
template <typename In, typename Out>
class FftBlocks {
 public:
  FftBlocks(const FftPlan& plan, int64_t blocks) : plan_(plan), blocks_(blocks) {
    if constexpr (std::is_same_v<In, float> || std::is_same_v<In, std::complex<float>>) {
      lines_ = fft::FloatLines::Of(plan);
    }
    if (lines_) return;
    for (const int64_t n : plan.length) axes_.emplace_back(n, plan.inverse());
  }

  // Floats of Run's scratch (FloatLines).
  int64_t scratch_size() const { return lines_ ? lines_->scratch_size(blocks_) : 0; }

  void Run(const void* in, void* out, float* scratch) const {
    if (lines_) {
      return lines_->Run(static_cast<const float*>(in), static_cast<float*>(out), blocks_, scratch);
    }
    const In* src = static_cast<const In*>(in);
    Out* dst = static_cast<Out*>(out);
    ParallelFor(blocks_, std::max<int64_t>(1, 4096 / std::max<int64_t>(plan_.points(), 1)),
                [&](int64_t begin, int64_t end) {
                  std::vector<FftValue> block;
                  for (int64_t b = begin; b < end; ++b) {
                    FftBlock(plan_, std::span<const FftAxis>(axes_), src + b * plan_.in_points(),
                             dst + b * plan_.out_points(), block);
                  }
                });
  }

 private:
  const FftPlan plan_;
  const int64_t blocks_;
  std::optional<fft::FloatLines> lines_;
  std::vector<FftAxis> axes_;  // unless there are lines_
};

// Reads fft_length, the lengths of a real transform. As in TensorFlow the input must be at least as
// long in each dimension, or empty there.
Status ReadFftLengths(const Shape& in, const Tensor& wanted, FftPlan* plan) {
  if (wanted.rank() != 1 || wanted.dim(0) != plan->rank) {
    return InvalidArgument("fft_length must have shape [", plan->rank, "]");
  }
  for (int i = 0; i < plan->rank; ++i) {
    const int64_t length = IndexAt(wanted, i);
    if (length < 0) return InvalidArgument("fft_length[", i, "] must >= 0, but got: ", length);
    const bool halved = plan->kind == FftKind::kInverseReal && i == plan->rank - 1;
    const int64_t needed = halved ? length / 2 + 1 : length;
    const int dim = in.rank() - plan->rank + i;
    if (in[dim] != 0 && in[dim] < needed) {
      return InvalidArgument("Input dimension ", dim, " must have length of at least ", needed,
                             " but got: ", in[dim]);
    }
    plan->length[3 - plan->rank + i] = length;
  }
  return OkStatus();
}

bool IsWideFft(Dtype t) { return t == Dtype::kDouble || t == Dtype::kComplex128; }

// A transform of a tensor, and the shape of the result.
struct FftOfTensor {
  FftPlan plan;
  Shape out;

  // Nothing is transformed: the result is empty, or zeros.
  bool empty(const Shape& in) const {
    return out.num_elements() == 0 || plan.points() == 0 || in.num_elements() == 0;
  }
};

// `lengths`: of a real transform.
template <FftKind kKind, int kRank>
StatusOr<FftOfTensor> PlanFft(const Shape& in, const Tensor* lengths) {
  if (in.rank() < kRank) {
    return InvalidArgument("Input must have rank of at least ", kRank, " but got: ", in.ToString());
  }
  FftPlan plan{kKind, kRank};
  for (int i = 0; i < kRank; ++i) plan.in[3 - kRank + i] = in[in.rank() - kRank + i];
  plan.length = plan.in;
  if (lengths != nullptr) RETURN_IF_ERROR(ReadFftLengths(in, *lengths, &plan));
  plan.out = plan.length;
  if (kKind == FftKind::kReal && plan.length[2] > 0) plan.out[2] = plan.length[2] / 2 + 1;
  // One row transformed as a plane is a line: STFTs of TensorFlow Lite are made of those.
  if (plan.points() == plan.length[2] && plan.in_points() == plan.in[2]) plan.rank = 1;
  Dims dims(in.dims().begin(), in.dims().end() - kRank);
  dims.insert(dims.end(), plan.out.end() - kRank, plan.out.end());
  ASSIGN_OR_RETURN(Shape out, Shape::Make(dims));
  return FftOfTensor{plan, std::move(out)};
}

constexpr bool HasFftLengths(FftKind kind) {
  return kind == FftKind::kReal || kind == FftKind::kInverseReal;
}

// Calls fn with the transform of blocks that the result has.
template <FftKind kKind, typename F>
auto WithFftBlocks(const FftOfTensor& fft, bool wide, F fn) {
  const int64_t blocks = fft.out.num_elements() / fft.plan.out_points();
  const auto with = [&]<typename T>() {
    using In = std::conditional_t<kKind == FftKind::kReal, T, std::complex<T>>;
    using Out = std::conditional_t<kKind == FftKind::kInverseReal, T, std::complex<T>>;
    return fn(FftBlocks<In, Out>(fft.plan, blocks));
  };
  return wide ? with.template operator()<double>() : with.template operator()<float>();
}

template <FftKind kKind, int kRank>
Status RunFft(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(
      const FftOfTensor fft,
      (PlanFft<kKind, kRank>(in.shape(), HasFftLengths(kKind) ? &ctx.input(1) : nullptr)));
  const bool wide = IsWideFft(in.dtype());
  if (wide != IsWideFft(ctx.output_type(0))) {
    return InvalidArgument("Wrong types for ", kKind == FftKind::kReal ? "forward" : "backward",
                           " real FFT: in=", static_cast<int>(in.dtype()),
                           " out=", static_cast<int>(ctx.output_type(0)));
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, fft.out));
  if (fft.empty(in.shape())) {
    if (out->num_elements() > 0) std::memset(out->raw(), 0, out->bytes());
    return OkStatus();
  }
  return WithFftBlocks<kKind>(fft, wide, [&](const auto& blocks) -> Status {
    ASSIGN_OR_RETURN(Tensor scratch, ctx.Temp(Dtype::kFloat, Shape({blocks.scratch_size()})));
    blocks.Run(in.raw(), out->raw(), scratch.data<float>());
    return OkStatus();
  });
}

template <FftKind kKind, int kRank>
StatusOr<std::unique_ptr<BoundKernel>> BindFft(const IntAttrs&, const BindContext& context) {
  const BoundTensor& in = context.inputs[0];
  const Tensor* lengths = HasFftLengths(kKind) ? context.inputs[1].constant : nullptr;
  if (HasFftLengths(kKind) && lengths == nullptr) {
    return DeclineToBind("the lengths are no constant");
  }
  const auto fft = PlanFft<kKind, kRank>(in.shape, lengths);
  const bool wide = IsWideFft(in.dtype);
  if (!fft.ok() || fft->empty(in.shape) || wide != IsWideFft(context.outputs[0].dtype) ||
      !Fits(context, HasFftLengths(kKind) ? 2 : 1, fft->out)) {
    return nullptr;  // the run fills it, or says why
  }
  return WithFftBlocks<kKind>(*fft, wide, [](auto blocks) {
    const auto bytes = static_cast<size_t>(blocks.scratch_size()) * sizeof(float);
    return BindCall(
        [blocks = std::move(blocks)](const void* const* inputs, void* const* outputs,
                                     void* scratch) {
          blocks.Run(inputs[0], outputs[0], static_cast<float*>(scratch));
        },
        {}, bytes);
  });
}

template <FftKind kKind, int kRank>
constexpr Kernel FftRow(OpName op) {
  return {op,
          "Tcomplex",
          kComplexTypes,
          "reference:fft",
          RunFft<kKind, kRank>,
          PrepareBinding<BindFft<kKind, kRank>>};
}

constexpr Kernel kFftTable[] = {
    FftRow<FftKind::kForward, 1>("FFT"),         FftRow<FftKind::kForward, 2>("FFT2D"),
    FftRow<FftKind::kForward, 3>("FFT3D"),       FftRow<FftKind::kInverse, 1>("IFFT"),
    FftRow<FftKind::kInverse, 2>("IFFT2D"),      FftRow<FftKind::kInverse, 3>("IFFT3D"),
    FftRow<FftKind::kReal, 1>("RFFT"),           FftRow<FftKind::kReal, 2>("RFFT2D"),
    FftRow<FftKind::kReal, 3>("RFFT3D"),         FftRow<FftKind::kInverseReal, 1>("IRFFT"),
    FftRow<FftKind::kInverseReal, 2>("IRFFT2D"), FftRow<FftKind::kInverseReal, 3>("IRFFT3D"),
};

}  // namespace

extern constinit const std::span<const Kernel> kFftKernels = kFftTable;

}  // namespace smelt
