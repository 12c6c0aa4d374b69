// Initial centers of k-means: points drawn one after another, more likely the further they lie from
// those drawn before.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "smelt/kernels/common/cancellable.h"
#include "smelt/kernels/common/philox.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

// Draws rows of a matrix of points.
class KmeansPoints {
 public:
  KmeansPoints(const Tensor& points, int64_t seed)
      : values_(points.data<float>()),
        count_(points.dim(0)),
        width_(points.dim(1)),
        draws_(Philox(static_cast<uint64_t>(seed), 0)),
        half_norms_(static_cast<size_t>(count_)),
        nearest_(static_cast<size_t>(count_), std::numeric_limits<float>::infinity()),
        sums_(static_cast<size_t>(count_)) {
    for (int64_t i = 0; i < count_; ++i) {
      half_norms_[static_cast<size_t>(i)] = 0.5f * Product(i, i);
    }
  }

  // The next point: of 1 + retries candidates the one that leaves the least sum of distances.
  StatusOr<int64_t> Next(int64_t retries, const Step& step) {
    if (!drawn_.empty()) std::partial_sum(nearest_.begin(), nearest_.end(), sums_.begin());
    float least = std::numeric_limits<float>::infinity();
    int64_t best = 0;
    std::vector<float> best_distances = nearest_;
    for (int64_t i = 0; i <= retries; ++i) {
      RETURN_IF_ERROR(CheckStep(step));
      ASSIGN_OR_RETURN(const int64_t candidate, Draw(step));
      std::vector<float> distances = DistancesWith(candidate);
      const float sum = std::accumulate(distances.begin(), distances.end(), 0.0f);
      if (retries != 0 && !(sum < least)) continue;
      least = sum;
      best = candidate;
      best_distances = std::move(distances);
    }
    nearest_ = std::move(best_distances);
    drawn_.insert(best);
    return best;
  }

 private:
  float Product(int64_t a, int64_t b) const {
    return std::inner_product(values_ + a * width_, values_ + (a + 1) * width_,
                              values_ + b * width_, 0.0f);
  }

  // Half the squared distance of each point to the nearest drawn one, were `point` drawn.
  std::vector<float> DistancesWith(int64_t point) const {
    std::vector<float> out(nearest_);
    for (int64_t i = 0; i < count_; ++i) {
      const auto k = static_cast<size_t>(i);
      out[k] = std::min(
          out[k], half_norms_[k] - Product(i, point) + half_norms_[static_cast<size_t>(point)]);
    }
    return out;
  }

  StatusOr<int64_t> Draw(const Step& step) {
    const auto n = static_cast<uint64_t>(count_);
    if (drawn_.empty()) return static_cast<int64_t>(draws_.Below64(n));
    for (int64_t turn = 1;; ++turn) {
      int64_t at = 0;
      if (const float total = sums_.back(); total > 0) {
        at = std::upper_bound(sums_.begin(), sums_.end(), draws_.Uniform() * total) - sums_.begin();
        at = std::min(at, count_ - 1);
      } else {
        at = static_cast<int64_t>(draws_.Below64(n));
      }
      if (!drawn_.contains(at)) return at;
      if (turn % 1024 == 0) RETURN_IF_ERROR(CheckStep(step));
    }
  }

  const float* values_;
  const int64_t count_, width_;
  PhiloxDraws draws_;
  std::vector<float> half_norms_, nearest_, sums_;
  absl::flat_hash_set<int64_t> drawn_;
};

Status RunKmeansPlusPlus(OpContext& ctx) {
  const Tensor& points = ctx.input(0);
  if (points.rank() != 2) return InvalidArgument("Input points should be a matrix.");
  constexpr absl::string_view kNames[] = {"num_to_sample", "seed", "num_retries_per_sample"};
  for (int i = 1; i < 4; ++i) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument("Input ", kNames[i - 1], " should be a scalar.");
    }
  }
  const int64_t wanted = ctx.input(1).scalar<int64_t>(), width = points.dim(1);
  if (points.dim(0) == 0) return InvalidArgument("Expected points.rows() > 0.");
  if (wanted <= 0) return InvalidArgument("Expected num_to_sample > 0.");
  if (wanted > points.dim(0)) {
    return InvalidArgument("Expected num_to_sample <= points.rows(). ", wanted, " vs ",
                           points.dim(0), ".");
  }
  int64_t retries = ctx.input(3).scalar<int64_t>();
  if (retries < 0) retries = 2 + static_cast<int64_t>(std::log(wanted));
  KmeansPoints source(points, ctx.input(2).scalar<int64_t>());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({wanted, width})));
  for (int64_t i = 0; i < wanted; ++i) {
    ASSIGN_OR_RETURN(const int64_t row, source.Next(retries, ctx.step()));
    std::copy_n(points.data<float>() + row * width, width, out->data<float>() + i * width);
  }
  return OkStatus();
}

// A Markov chain: each candidate takes the place of the current point with the probability of the
// quotient of their distances.
Status RunKmc2Chain(OpContext& ctx) {
  const Tensor &distances = ctx.input(0), &seed = ctx.input(1);
  if (distances.rank() != 1) return InvalidArgument("Input distances should be a vector.");
  if (seed.rank() != 0) return InvalidArgument("Input seed should be a scalar.");
  if (distances.num_elements() == 0) {
    return InvalidArgument("Expected distances_tensor.size() > 0.");
  }
  PhiloxDraws draws(Philox(static_cast<uint64_t>(seed.scalar<int64_t>()), 0));
  const auto d = distances.flat<float>();
  size_t at = 0;
  for (size_t i = 1; i < d.size(); ++i) {
    if (d[i] > draws.Uniform() * d[at]) at = i;
  }
  ctx.set_output(0, Tensor::Scalar(static_cast<int64_t>(at)));
  return OkStatus();
}

constexpr Kernel kKmeansTable[] = {
    {"KmeansPlusPlusInitialization", "", kAnyType, "reduce:kmeans_plus_plus", RunKmeansPlusPlus},
    {"KMC2ChainInitialization", "", kAnyType, "reduce:kmc2", RunKmc2Chain},
};

}  // namespace

extern constinit const std::span<const Kernel> kKmeansKernels = kKmeansTable;

}  // namespace smelt
