// NearestNeighbors: for each point the k centers with the smallest squared distances.
#include <algorithm>
#include <numeric>
#include <vector>

#include "smelt/base/parallel.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

Status CheckNeighbors(const Tensor& points, const Tensor& centers, const Tensor& k) {
  if (points.rank() != 2) return InvalidArgument("Input points should be a matrix.");
  if (centers.rank() != 2) return InvalidArgument("Input centers should be a matrix.");
  if (k.rank() != 0) return InvalidArgument("Input k should be a scalar.");
  if (points.dim(0) == 0) return InvalidArgument("Expected points.rows() > 0.");
  if (points.dim(1) != centers.dim(1)) {
    return InvalidArgument("Expected point_dimensions == center_dimensions: ", points.dim(1),
                           " vs ", centers.dim(1), ".");
  }
  if (k.scalar<int64_t>() < 0) {
    return InvalidArgument("Expected k >= 0, got ", k.scalar<int64_t>());
  }
  return OkStatus();
}

Status RunNearestNeighbors(OpContext& ctx) {
  const Tensor &points = ctx.input(0), &centers = ctx.input(1);
  RETURN_IF_ERROR(CheckNeighbors(points, centers, ctx.input(2)));
  const int64_t n = points.dim(0), count = centers.dim(0), width = points.dim(1);
  const int64_t k = std::min(ctx.input(2).scalar<int64_t>(), count);
  ASSIGN_OR_RETURN(Tensor * indices, ctx.Allocate(0, Shape({n, k})));
  ASSIGN_OR_RETURN(Tensor * distances, ctx.Allocate(1, Shape({n, k})));
  if (k == 0) return OkStatus();
  const float *p = points.data<float>(), *c = centers.data<float>();
  int64_t* to_index = indices->data<int64_t>();
  float* to_distance = distances->data<float>();
  ParallelFor(n, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, count * width)),
              [&](int64_t begin, int64_t end) {
                std::vector<std::pair<float, int64_t>> found(static_cast<size_t>(count));
                for (int64_t i = begin; i < end; ++i) {
                  for (int64_t j = 0; j < count; ++j) {
                    float sum = 0;
                    for (int64_t d = 0; d < width; ++d) {
                      const float off = p[i * width + d] - c[j * width + d];
                      sum += off * off;
                    }
                    found[j] = {sum, j};
                  }
                  // NaN last, so that there is an order.
                  const auto nearer = [](const auto& a, const auto& b) {
                    const bool a_nan = a.first != a.first, b_nan = b.first != b.first;
                    if (a_nan || b_nan) return a_nan == b_nan ? a.second < b.second : b_nan;
                    return a < b;
                  };
                  std::partial_sort(found.begin(), found.begin() + k, found.end(), nearer);
                  for (int64_t j = 0; j < k; ++j) {
                    to_distance[i * k + j] = found[j].first;
                    to_index[i * k + j] = found[j].second;
                  }
                }
              });
  return OkStatus();
}

constexpr Kernel kNeighborTable[] = {
    {"NearestNeighbors", "", kAnyType, "reduce:nearest_neighbors", RunNearestNeighbors},
};

}  // namespace

extern constinit const std::span<const Kernel> kNeighborKernels = kNeighborTable;

}  // namespace smelt
