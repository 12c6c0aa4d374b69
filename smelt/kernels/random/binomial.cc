// Binomial samples, bit for bit TensorFlow's on a CPU.
#include <algorithm>
#include <cmath>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/cancellable.h"
#include "smelt/kernels/random/generator.h"
#include "smelt/kernels/random/rejection.h"

namespace smelt {
namespace {

// Blocks of the stream that TensorFlow sets aside for one sample.
constexpr uint64_t kGeometricStretch = 42, kTransformedStretch = 256;

// Counts how many waits for a success, geometric variables, fit into `count` trials. For
// count * prob < 10.
double BinomialByGeometric(double count, double prob, RejectionSource source) {
  const double log_fail = std::log1p(-prob);
  double sum = 0;
  for (int found = 0; found < kMaxTurns; ++found) {
    sum += std::ceil(std::log(source.Uniform()) / log_fail);
    if (!(sum <= count)) return found;
  }
  return kMaxTurns;
}

// log(k!) less Stirling's approximation of it.
double StirlingTail(double k) {
  if (k <= 9) {
    constexpr double kHalfLogTwoPi = 0.91893853320467274178;
    return LogGamma(k + 1) - (kHalfLogTwoPi + (k + 0.5) * std::log(k + 1) - (k + 1));
  }
  const double n = k + 1, square = n * n;
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / n;
}

// Hoermann's transformed rejection with a squeeze (BTRS, 1993), for count * prob >= 10.
double BinomialByRejection(double count, double prob, RejectionSource source) {
  const double deviation = std::sqrt(count * prob * (1 - prob));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * prob;
  const double c = count * prob + 0.5;
  const double v_r = 0.92 - 4.2 / b;
  const double r = prob / (1 - prob);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double m = std::floor((count + 1) * prob);
  for (int turn = 0; turn < kMaxTurns; ++turn) {
    const double u = source.Uniform() - 0.5;
    const double v = source.Uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                         (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + StirlingTail(m) +
                         StirlingTail(count - m) - StirlingTail(k) - StirlingTail(count - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// Sample i of the stream.
double SampleBinomial(double count, double prob, const Philox& gen, int64_t i) {
  if (std::isnan(prob) || !std::isfinite(count)) return std::numeric_limits<double>::quiet_NaN();
  if (count <= 0 || prob <= 0) return 0;
  if (prob >= 1) return count;
  const bool mirror = prob > 0.5;
  const double p = mirror ? 1 - prob : prob;
  const double found =
      count * p >= 10 ? BinomialByRejection(count, p, RejectionSource(gen, i, kTransformedStretch))
                      : BinomialByGeometric(count, p, RejectionSource(gen, i, kGeometricStretch));
  return mirror ? count - found : found;
}

// Counts and probabilities broadcast against each other; pairs are numbered in row-major order.
class BinomialPairs {
 public:
  static StatusOr<BinomialPairs> Of(const Tensor& counts, const Tensor& probs) {
    std::optional<BroadcastParameters> joint = BroadcastParameters::Of({&counts, &probs});
    if (!joint.has_value()) {
      return InvalidArgument("counts and probs must have compatible batch dimensions: ",
                             counts.shape().ToString(), " vs. ", probs.shape().ToString());
    }
    return BinomialPairs(*std::move(joint), counts, probs);
  }
  const Dims& shape() const { return joint_.shape(); }
  double count(int64_t pair) const { return ParameterAt(*counts_, joint_.Place(0, pair)); }
  double prob(int64_t pair) const { return ParameterAt(*probs_, joint_.Place(1, pair)); }

 private:
  BinomialPairs(BroadcastParameters joint, const Tensor& counts, const Tensor& probs)
      : joint_(std::move(joint)), counts_(&counts), probs_(&probs) {}

  BroadcastParameters joint_;
  const Tensor* counts_;
  const Tensor* probs_;
};

Status FillBinomial(const Step& step, const Philox& gen, const BinomialPairs& pairs, Tensor* out) {
  const int64_t n = out->num_elements();
  if (n == 0) return OkStatus();
  int64_t count = 1;
  for (int64_t d : pairs.shape()) count *= d;
  const int64_t samples = n / count;
  return VisitOneOf(SampleTypes(), out->dtype(), [&]<typename T>() {
    T* to = out->data<T>();
    return CancellableFor(step, n, 256, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t pair = i / samples, sample = i % samples;
        to[sample * count + pair] =
            CastSample<T>(SampleBinomial(pairs.count(pair), pairs.prob(pair), gen, i));
      }
    });
  });
}

Status RunStatelessBinomial(OpContext& ctx) {
  ASSIGN_OR_RETURN(const Philox gen, StatelessGenerator(ctx.input(1)));
  if (ctx.input(0).rank() != 1) {
    return InvalidArgument("Input shape should be a vector, got shape: ",
                           ctx.input(0).shape().ToString());
  }
  ASSIGN_OR_RETURN(const Shape shape, ShapeInput(ctx.input(0)));
  ASSIGN_OR_RETURN(const BinomialPairs pairs, BinomialPairs::Of(ctx.input(2), ctx.input(3)));
  RETURN_IF_ERROR(CheckSampleShape(shape, pairs.shape()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  return FillBinomial(ctx.step(), gen, pairs, out);
}

Status RunStatefulBinomial(OpContext& ctx) {
  if (ctx.input(2).rank() != 1) {
    return InvalidArgument("Input shape should be a vector, got shape: ",
                           ctx.input(2).shape().ToString());
  }
  if (ctx.input(1).rank() != 0) {
    return InvalidArgument("algorithm must be of shape [], not ", ctx.input(1).shape().ToString());
  }
  ASSIGN_OR_RETURN(const BinomialPairs pairs, BinomialPairs::Of(ctx.input(3), ctx.input(4)));
  ASSIGN_OR_RETURN(const Shape shape, ShapeInput(ctx.input(2)));
  RETURN_IF_ERROR(CheckSampleShape(shape, pairs.shape()));
  const int64_t algorithm = ctx.input(1).scalar<int64_t>();
  if (algorithm != 1) return InvalidArgument("Unsupported algorithm id: ", algorithm);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  // TensorFlow skips 50 * 256 blocks for each sample, and for 3 more samples of each pair.
  const int lead = shape.rank() - static_cast<int>(pairs.shape().size());
  const auto samples = static_cast<uint64_t>(shape.Product(0, lead));
  const auto count = static_cast<uint64_t>(shape.Product(lead, shape.rank()));
  return UseGenerator(
      ctx, algorithm, count * (samples + 3) * 50 * 256,
      [&](const Philox& gen, const int64_t*) { return FillBinomial(ctx.step(), gen, pairs, out); });
}

constexpr DtypeSet kBinomialTypes = kFloatTypes | Types(Dtype::kHalf, Dtype::kInt32, Dtype::kInt64);

constexpr Kernel kBinomialTable[] = {
    {"StatelessRandomBinomial", "dtype", kBinomialTypes, "random:binomial", RunStatelessBinomial},
    {"StatefulRandomBinomial", "dtype", kBinomialTypes, "random:binomial", RunStatefulBinomial},
};

}  // namespace

extern constinit const std::span<const Kernel> kBinomialKernels = kBinomialTable;

}  // namespace smelt
