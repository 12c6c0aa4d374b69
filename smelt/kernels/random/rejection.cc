// Gamma and Poisson samples by rejection, bit for bit TensorFlow's on a CPU: every sample has a
// stretch of 256 blocks of the stream to itself.
#include "smelt/kernels/random/rejection.h"

#include <math.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/cancellable.h"

namespace smelt {
namespace {

// Size of dimension i of the tensor with leading dimensions of 1 added up to `rank`.
int64_t JointSize(const Tensor& t, int rank, int i) {
  const int at = i - (rank - t.rank());
  return at < 0 ? 1 : t.dim(at);
}

}  // namespace

double LogGamma(double x) {
  int sign;
  // lgamma itself writes a global variable, which is not thread safe.
  return lgamma_r(x, &sign);
}

std::optional<BroadcastParameters> BroadcastParameters::Of(std::vector<const Tensor*> tensors) {
  BroadcastParameters joint;
  int rank = 0;
  for (const Tensor* t : tensors) rank = std::max(rank, t->rank());
  for (int i = 0; i < rank; ++i) {
    int64_t size = 1;
    for (const Tensor* t : tensors) {
      const int64_t own = JointSize(*t, rank, i);
      if (own != size && own != 1 && size != 1) return std::nullopt;
      if (own != 1) size = own;
    }
    joint.shape_.push_back(size);
  }
  joint.tensors_ = std::move(tensors);
  return joint;
}

int64_t BroadcastParameters::Place(int t, int64_t at) const {
  const int rank = static_cast<int>(shape_.size());
  int64_t place = 0, step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const int64_t size = JointSize(*tensors_[static_cast<size_t>(t)], rank, i);
    if (size != 1) place += at % shape_[static_cast<size_t>(i)] * step;
    step *= size;
    at /= shape_[static_cast<size_t>(i)];
  }
  return place;
}

Status CheckSampleShape(const Shape& shape, const Dims& joint) {
  const int lead = shape.rank() - static_cast<int>(joint.size());
  if (lead >= 0 && std::equal(joint.begin(), joint.end(), shape.dims().begin() + lead)) {
    return OkStatus();
  }
  return InvalidArgument("Shape passed in must end with broadcasted shape.");
}

double ParameterAt(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case Dtype::kHalf:
      return static_cast<double>(static_cast<float>(t.data<Half>()[i]));
    case Dtype::kBfloat16:
      return static_cast<double>(static_cast<float>(t.data<Bfloat16>()[i]));
    case Dtype::kFloat:
      return static_cast<double>(t.data<float>()[i]);
    case Dtype::kDouble:
      return t.data<double>()[i];
    default:
      return static_cast<double>(IntAt(t, i));
  }
}

namespace {

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
double SampleGamma(double alpha, RejectionSource& source) {
  if (alpha == 1) return -std::log1p(-source.Uniform());
  const bool small = alpha < 1;
  const double d = alpha + (small ? 1 : 0) - 1.0 / 3;
  // No turn would accept.
  if (!(d > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double c = 1.0 / 3 / std::sqrt(d);
  for (int turn = 0; turn < kMaxTurns; ++turn) {
    const double x = source.Normal();
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = source.Uniform();
    if (u < 1 - 0.0331 * (x * x) * (x * x) ||
        std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      const double sample = d * v;
      return small ? sample * std::pow(source.Uniform(), 1 / alpha) : sample;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// `largest` is the largest result that the type holds.
double SamplePoisson(double rate, double largest, RejectionSource& source) {
  // TensorFlow loops forever for these.
  if (!std::isfinite(rate)) return std::numeric_limits<double>::quiet_NaN();
  if (rate < 10) {
    // Knuth's product of uniforms.
    const double limit = std::exp(-rate);
    double product = 1;
    for (double x = 0; x < kMaxTurns; ++x) {
      product *= source.Uniform();
      if (product <= limit && x <= largest) return x;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }
  // Hoermann's transformed rejection with a squeeze (PTRS, 1993).
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (int turn = 0; turn < kMaxTurns; ++turn) {
    const double u = source.Uniform() - 0.5;
    const double v = source.Uniform();
    const double u_shifted = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / u_shifted + b) * u + rate + 0.43);
    if (k > largest) continue;
    if (u_shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (u_shifted < 0.013 && v > u_shifted)) continue;
    const double s = std::log(v * inverse_alpha / (a / (u_shifted * u_shifted) + b));
    const double t = -rate + k * log_rate - LogGamma(k + 1);
    if (s <= t) return k;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

template <typename T>
double LargestSample() {
  if constexpr (std::is_same_v<T, Half>) {
    return 65504;
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return 3.38953139e38;
  } else {
    return static_cast<double>(std::numeric_limits<T>::max());
  }
}

enum class RejectionKind : uint8_t { kGamma, kPoisson };

// Output [samples..., parameters...]: parameter p's sample s is number p * samples + s of the
// stream.
template <RejectionKind kKind>
Status FillRejection(const Step& step, const Philox& gen, const Tensor& parameters, int64_t samples,
                     Tensor* out) {
  const int64_t count = parameters.num_elements();
  return VisitOneOf(SampleTypes(), out->dtype(), [&]<typename T>() {
    T* to = out->data<T>();
    return CancellableFor(step, count * samples, 256, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t parameter = i / samples, sample = i % samples;
        RejectionSource source(gen, i, 256);
        const double value = ParameterAt(parameters, parameter);
        to[sample * count + parameter] = CastSample<T>(
            kKind == RejectionKind::kGamma ? SampleGamma(value, source)
                                           : SamplePoisson(value, LargestSample<T>(), source));
      }
    });
  });
}

// The output's shape: `samples` in front of the parameters' shape.
StatusOr<Shape> RejectionShape(const Shape& samples, const Shape& parameters) {
  Dims dims(samples.dims().begin(), samples.dims().end());
  dims.insert(dims.end(), parameters.dims().begin(), parameters.dims().end());
  return CheckedShape(dims);
}

template <RejectionKind kKind>
Status RunSeededRejection(OpContext& ctx) {
  ASSIGN_OR_RETURN(const Shape samples, ShapeInput(ctx.input(0)));
  ASSIGN_OR_RETURN(const Shape shape, RejectionShape(samples, ctx.input(1).shape()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  const Philox gen =
      ctx.state<SeededState>().Reserve(ctx.step(), ReservedBlocks(out->num_elements()));
  return FillRejection<kKind>(ctx.step(), gen, ctx.input(1), samples.num_elements(), out);
}

// The stateless ops state the whole shape; the parameters' shape is its end.
template <RejectionKind kKind, bool kKeyed>
Status RunStatelessRejection(OpContext& ctx) {
  if (kKeyed) RETURN_IF_ERROR(CheckKeyCounter(ctx, 1));
  ASSIGN_OR_RETURN(const Shape shape, ShapeInput(ctx.input(0)));
  if (!kKeyed) RETURN_IF_ERROR(CheckStatelessSeed(ctx.input(1)));
  const Tensor& parameters = ctx.input(kKeyed ? 4 : 2);
  if (shape.num_elements() == 0) return ctx.Allocate(0, shape).status();
  ASSIGN_OR_RETURN(const Philox gen,
                   kKeyed ? KeyCounterGenerator(ctx, 1) : StatelessGenerator(ctx.input(1)));
  const Shape& tail = parameters.shape();
  RETURN_IF_ERROR(CheckSampleShape(shape, Dims(tail.dims().begin(), tail.dims().end())));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  return FillRejection<kKind>(ctx.step(), gen, parameters,
                              shape.Product(0, shape.rank() - tail.rank()), out);
}

constexpr DtypeSet kGammaTypes = kFloatTypes | kHalfTypes;
constexpr DtypeSet kPoissonTypes = kFloatTypes | Types(Dtype::kHalf, Dtype::kInt32, Dtype::kInt64);

constexpr Kernel kRejectionTable[] = {
    {"RandomGamma", "T", kGammaTypes, "random:gamma", RunSeededRejection<RejectionKind::kGamma>,
     PrepareSeeded},
    {"RandomPoisson", "dtype", kFloatTypes | Types(Dtype::kHalf), "random:poisson",
     RunSeededRejection<RejectionKind::kPoisson>, PrepareSeeded},
    {"RandomPoissonV2", "dtype", kPoissonTypes, "random:poisson",
     RunSeededRejection<RejectionKind::kPoisson>, PrepareSeeded},
    {"StatelessRandomPoisson", "dtype", kPoissonTypes, "random:poisson",
     RunStatelessRejection<RejectionKind::kPoisson, false>},
    {"StatelessRandomGammaV2", "dtype", kGammaTypes, "random:gamma",
     RunStatelessRejection<RejectionKind::kGamma, false>},
    {"StatelessRandomGammaV3", "dtype", kGammaTypes, "random:gamma",
     RunStatelessRejection<RejectionKind::kGamma, true>},
};

}  // namespace

extern constinit const std::span<const Kernel> kRejectionKernels = kRejectionTable;

}  // namespace smelt
