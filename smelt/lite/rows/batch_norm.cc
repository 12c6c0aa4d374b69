// Normalizations of a batch for which there is no operator: by the batch's own statistics, and
// the first version's by given ones.
#include <algorithm>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// How many numbers each of the channels' statistics is of; -1: that is not known before it runs.
int64_t CountOf(const PartialShape& x, const std::vector<int64_t>& axes) {
  int64_t count = 1;
  for (const int64_t a : axes) {
    const int64_t size = x[static_cast<int>(a)];
    if (size < 0 || (size > 0 && count > (int64_t{1} << 40) / size)) return -1;
    count *= size;
  }
  return count;
}

// Of so many numbers as there are along the axes when it runs, by one less; of one, 1.
StatusOr<Endpoint> SampleFactor(Endpoint x, const std::vector<int64_t>& axes, Legalizer& l) {
  OperatorChain c(l);
  Endpoint count;
  for (const int64_t a : axes) {
    ASSIGN_OR_RETURN(const Endpoint size, SizeOf(x, a, l));
    count = count.node == nullptr ? size : c.Mul(count, size);
  }
  const Endpoint of = c.Cast(count, Dtype::kFloat);
  const Endpoint factor = c.Div(of, c.Max(c.Sub(of, 1), 1));
  RETURN_IF_ERROR(c.Done(factor).status());
  return factor;
}

// (1 - factor) * before + factor * now, of which TensorFlow gives `now` alone where factor is 1.
StatusOr<Endpoint> Averaged(Endpoint now, Endpoint before, float factor, const LiteOutput& out,
                            Legalizer& l) {
  if (factor == 1.0f) return now;
  ASSIGN_OR_RETURN(const Endpoint old,
                   l.Add("tfl.mul", {before, l.Floats(1.0f - factor)}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint part, l.Add("tfl.mul", {now, l.Floats(factor)}, {}, out));
  return l.Add("tfl.add", {old, part}, {}, out);
}

// (x - mean) / sqrt(variance + epsilon) * gamma + beta, as x * scale + shift.
LiteEndpoints GlobalNorm(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const Endpoint mean = n.input(1), variance = n.input(2), beta = n.input(3), gamma = n.input(4);
  const LiteOutput channels = {Dtype::kFloat, l.shape(variance)};
  ASSIGN_OR_RETURN(
      const Endpoint sum,
      l.Add("tfl.add", {variance, l.Floats(n.Float("variance_epsilon"))}, {}, channels));
  ASSIGN_OR_RETURN(Endpoint scale, l.Add("tfl.rsqrt", {sum}, {}, channels));
  if (n.Bool("scale_after_normalization")) {
    ASSIGN_OR_RETURN(scale, l.Add("tfl.mul", {scale, gamma}, {}, channels));
  }
  ASSIGN_OR_RETURN(const Endpoint product,
                   l.Add("tfl.mul", {n.input(0), scale}, {}, l.OutputOf(n)));
  ASSIGN_OR_RETURN(const Endpoint moved, l.Add("tfl.mul", {mean, scale}, {}, channels));
  ASSIGN_OR_RETURN(const Endpoint shift, l.Add("tfl.sub", {beta, moved}, {}, channels));
  return One(l.Add("tfl.add", {product, shift}, {}, l.OutputOf(n)));
}

constexpr ExportRow kBatchNormRows[] = {{"BatchNormWithGlobalNormalization", GlobalNorm}};

}  // namespace

LiteEndpoints TrainingBatchNorm(Node& n, Legalizer& l) {
  const Endpoint x = n.input(0), gamma = n.input(1), beta = n.input(2);
  const PartialShape from = l.shape(x), channels = l.shape(gamma);
  const std::string format = n.String("data_format", "NHWC");
  const int rank = static_cast<int>(format.size());
  if (from.rank() != rank || channels.rank() != 1) {
    return Unimplemented("it is training, and the rank of its input is not known");
  }
  const int64_t channel = format.find('C') == 1 ? 1 : rank - 1;
  std::vector<int64_t> axes, kept_sizes;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != channel) axes.push_back(i);
    kept_sizes.push_back(i == channel ? channels[0] : 1);
  }
  // What FusedBatchNormGradV3 takes of the last is never looked at.
  for (const Use& use : n.uses()) {
    if (use.port() == 5 && !use.node->Is("FusedBatchNormGradV3")) {
      return Unimplemented("it is training, and its last result is read, which is no number");
    }
  }
  const LiteOutput out = l.OutputOf(n), vector = {Dtype::kFloat, channels};
  const LiteOutput kept = {Dtype::kFloat, PartialShape::Of(kept_sizes)};
  const Endpoint at = l.Ints(axes);
  const AttrMap keep = Options({{"keep_dims", true}});
  ASSIGN_OR_RETURN(const Endpoint mean, l.Add("tfl.mean", {x, at}, keep, kept));
  ASSIGN_OR_RETURN(const Endpoint squares, l.Add("tfl.squared_difference", {x, mean}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint variance, l.Add("tfl.mean", {squares, at}, keep, kept));
  ASSIGN_OR_RETURN(const Endpoint sum,
                   l.Add("tfl.add", {variance, l.Floats(n.Float("epsilon", 1e-4f))}, {}, kept));
  ASSIGN_OR_RETURN(const Endpoint root, l.Add("tfl.rsqrt", {sum}, {}, kept));
  // A vector that lies along the channels, wherever these are.
  const auto along = [&](Endpoint v) -> StatusOr<Endpoint> {
    if (channel == rank - 1) return v;
    return l.Add("tfl.reshape", {v, l.Ints(kept_sizes)}, Options({{"new_shape", kept_sizes}}),
                 kept);
  };
  ASSIGN_OR_RETURN(const Endpoint factors, along(gamma));
  ASSIGN_OR_RETURN(const Endpoint scale, l.Add("tfl.mul", {root, factors}, {}, kept));
  ASSIGN_OR_RETURN(const Endpoint centered, l.Add("tfl.sub", {x, mean}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint scaled, l.Add("tfl.mul", {centered, scale}, {}, out));
  ASSIGN_OR_RETURN(const Endpoint moved, along(beta));
  ASSIGN_OR_RETURN(const Endpoint y, l.Add("tfl.add", {scaled, moved}, {}, out));
  std::vector<Endpoint> by(static_cast<size_t>(n.num_outputs()), y);
  const float factor = n.Float("exponential_avg_factor", 1.0f);
  const auto flat = [&](Endpoint v) {
    return l.Add("tfl.reshape", {v, l.Ints(std::vector<int64_t>{channels[0]})},
                 Options({{"new_shape", std::vector<int64_t>{channels[0]}}}), vector);
  };
  if (n.NumUses(1) > 0) {
    ASSIGN_OR_RETURN(const Endpoint now, flat(mean));
    ASSIGN_OR_RETURN(by[1], Averaged(now, n.input(3), factor, vector, l));
  }
  // For the gradient, of the batch itself.
  for (const int i : {3, 4}) {
    if (i >= n.num_outputs() || n.NumUses(i) == 0) continue;
    ASSIGN_OR_RETURN(by[static_cast<size_t>(i)], flat(i == 3 ? mean : variance));
  }
  if (n.NumUses(2) > 0) {
    // That of all numbers there could be, of which the batch is a sample.
    const int64_t count = CountOf(from, axes);
    ASSIGN_OR_RETURN(Endpoint now, flat(variance));
    if (count < 1) {
      ASSIGN_OR_RETURN(const Endpoint of, SampleFactor(x, axes, l));
      ASSIGN_OR_RETURN(now, l.Add("tfl.mul", {now, of}, {}, vector));
    } else if (count > 1) {
      const auto of = static_cast<float>(count);
      ASSIGN_OR_RETURN(now, l.Add("tfl.mul", {now, l.Floats(of / (of - 1.0f))}, {}, vector));
    }
    ASSIGN_OR_RETURN(by[2], Averaged(now, n.input(4), factor, vector, l));
  }
  return by;
}

std::span<const ExportRow> BatchNormExport() { return kBatchNormRows; }

}  // namespace smelt
