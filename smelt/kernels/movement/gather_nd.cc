// GatherNd, ResourceGatherNd: slices by rows of indices.
#include <algorithm>
#include <atomic>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/slice_name.h"
#include "smelt/kernels/common/variables.h"

namespace smelt {
namespace {

struct GatherNdState final : KernelState {
  bool ignore_bad = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareGatherNd(const Node& node) {
  auto state = std::make_unique<GatherNdState>();
  const std::string policy = node.String("bad_indices_policy");
  if (policy == "IGNORE") {
    state->ignore_bad = true;
  } else if (!policy.empty() && policy != "DEFAULT" && policy != "ERROR") {
    return InvalidArgument("Bad indices policy attribute: ", policy);
  }
  return state;
}

Status GatherNdFrom(OpContext& ctx, const Tensor& params, bool ignore_bad) {
  const Tensor& indices = ctx.input(1);
  if (params.rank() < 1) return InvalidArgument("params must be at least a vector");
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector");
  const int64_t depth = indices.shape().back();
  if (depth > params.rank()) {
    return InvalidArgument("index innermost dimension length must be <= params rank; saw: ", depth,
                           " vs. ", params.rank());
  }
  const auto index_dims = indices.shape().dims();
  Dims dims(index_dims.begin(), index_dims.end() - 1);
  const auto rest = params.shape().dims().subspan(static_cast<size_t>(depth));
  dims.insert(dims.end(), rest.begin(), rest.end());
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  const NdIndices nd(indices, params.shape());
  if (params.num_elements() == 0 && nd.rows() > 0) {
    return InvalidArgument("Requested more than 0 entries, but params is empty.  Params shape: ",
                           params.shape().ToString());
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  const int64_t slice = nd.slice();
  const Dtype dtype = params.dtype();
  std::atomic<int64_t> bad{-1};
  VisitMovable(dtype, [&]<typename T>() {
    const T* from = static_cast<const T*>(params.raw());
    T* to = static_cast<T*>(out->raw());
    const auto bytes = static_cast<int64_t>(sizeof(T)) * slice;
    ParallelFor(nd.rows(), (128 << 10) / (bytes + 32) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t place = nd.Place(i);
        if (place < 0) {
          bad.store(i, std::memory_order_relaxed);
          std::fill_n(to + i * slice, slice, T());
        } else if (slice == 1) {
          to[i] = from[place];
        } else {
          std::copy_n(from + place, slice, to + i * slice);
        }
      }
    });
  });
  if (bad.load() >= 0 && !ignore_bad) {
    int64_t last = nd.rows() - 1;
    while (nd.Place(last) >= 0) --last;
    return InvalidArgument(nd.Describe(last), " does not index into param shape ",
                           params.shape().ToString(), ", node name: ", ctx.node().name());
  }
  return OkStatus();
}

Status RunGatherNd(OpContext& ctx) {
  return GatherNdFrom(ctx, ctx.input(0), ctx.state<GatherNdState>().ignore_bad);
}

Status RunResourceGatherNd(OpContext& ctx) {
  ASSIGN_OR_RETURN(const Tensor params, ReadPartOf(ctx));
  return GatherNdFrom(ctx, params, false);
}

constexpr Kernel kGatherNdTable[] = {
    {"GatherNd", "", kAnyType, "movement:gather_nd", RunGatherNd, PrepareGatherNd},
    {"ResourceGatherNd", "", kAnyType, "movement:gather_nd", RunResourceGatherNd},
};

}  // namespace

extern constinit const std::span<const Kernel> kGatherNdKernels = kGatherNdTable;

}  // namespace smelt
