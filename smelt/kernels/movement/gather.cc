// Gather, GatherV2, ResourceGather: slices of one dimension by index.
#include <algorithm>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/slice_name.h"
#include "smelt/kernels/common/variables.h"

namespace smelt {
namespace {

constexpr int64_t kGatherGrainBytes = 128 << 10;

// A gather seen as params [batch, outer, limit, slice] and indices [batch, n], each in [0, limit):
// the output is [batch, outer, n, slice].
struct GatherSizes {
  int64_t batch, outer, limit, slice, n;
};

struct GatherPlan {
  Shape shape;
  GatherSizes sizes;
};

template <typename Index>
int64_t FirstBadIndex(const Index* indices, int64_t n, int64_t limit) {
  for (int64_t i = 0; i < n; ++i) {
    // One unsigned comparison refuses negative ones as well.
    if (static_cast<uint64_t>(static_cast<int64_t>(indices[i])) >= static_cast<uint64_t>(limit)) {
      return i;
    }
  }
  return -1;
}

template <typename T, typename Index>
void GatherSlices(const T* params, const Index* indices, const GatherSizes& s, T* out) {
  const int64_t bytes = std::max<int64_t>(1, s.slice * static_cast<int64_t>(sizeof(T)));
  ParallelFor(s.batch * s.outer * s.n, std::max<int64_t>(1, kGatherGrainBytes / (bytes + 16)),
              [&](int64_t begin, int64_t end) {
                for (int64_t at = begin; at < end;) {
                  const int64_t block = at / s.n;  // of [batch, outer]
                  const int64_t from = at % s.n;
                  const int64_t count = std::min(s.n - from, end - at);
                  const T* base = params + block * s.limit * s.slice;
                  const Index* index = indices + block / s.outer * s.n + from;
                  T* to = out + at * s.slice;
                  if (s.slice == 1) {
                    for (int64_t i = 0; i < count; ++i) to[i] = base[index[i]];
                  } else if constexpr (std::is_trivially_copyable_v<T>) {
                    for (int64_t i = 0; i < count; ++i) {
                      std::memcpy(to + i * s.slice, base + index[i] * s.slice, bytes);
                    }
                  } else {
                    for (int64_t i = 0; i < count; ++i) {
                      std::copy_n(base + index[i] * s.slice, s.slice, to + i * s.slice);
                    }
                  }
                  at += count;
                }
              });
}

// REQUIRES: 0 <= axis < rank of p.
StatusOr<GatherPlan> PlanGather(const Shape& p, const Shape& indices, int64_t axis,
                                int64_t batch_dims) {
  if (batch_dims != 0) {
    if (batch_dims < -indices.rank() || batch_dims > indices.rank()) {
      return InvalidArgument("Expected batch_dims in the range [", -indices.rank(), ", ",
                             indices.rank(), "], but got ", batch_dims);
    }
    if (batch_dims < 0) batch_dims += indices.rank();
    if (batch_dims >= p.rank()) {
      return InvalidArgument("batch_dims (", batch_dims, ") must be less than rank(params) (",
                             p.rank(), ").");
    }
    if (axis < batch_dims) {
      return InvalidArgument("batch_dims (", batch_dims, ") must be less than or equal to ",
                             "axis (", axis, ").");
    }
    for (int i = 0; i < batch_dims; ++i) {
      if (p[i] != indices[i]) {
        return InvalidArgument("params.shape[", i, "]: ", p[i],
                               " should be equal to indices.shape[", i, "]: ", indices[i]);
      }
    }
  }
  const auto a = static_cast<int>(axis);
  const auto b = static_cast<int>(batch_dims);
  Dims dims(p.dims().begin(), p.dims().begin() + a);
  for (int i = b; i < indices.rank(); ++i) dims.push_back(indices[i]);
  dims.insert(dims.end(), p.dims().begin() + a + 1, p.dims().end());
  GatherPlan plan;
  ASSIGN_OR_RETURN(plan.shape, CheckedShape(dims));
  plan.sizes = {p.Product(0, b), p.Product(b, a), p[a], p.Product(a + 1, p.rank()),
                indices.Product(b, indices.rank())};
  return plan;
}

template <typename Index>
Status CheckIndices(const Index* indices, const Shape& shape, int64_t limit) {
  const int64_t bad = FirstBadIndex(indices, shape.num_elements(), limit);
  if (bad < 0) return OkStatus();
  return InvalidArgument("indices", SliceName(shape, bad), " = ",
                         static_cast<int64_t>(indices[bad]), " is not in [0, ", limit, ")");
}

template <typename Index>
void GatherTyped(Dtype dtype, const void* params, const Index* indices, const GatherSizes& sizes,
                 void* out) {
  VisitMovable(dtype, [&]<typename T>() {
    GatherSlices(static_cast<const T*>(params), indices, sizes, static_cast<T*>(out));
  });
}

Status GatherAlong(OpContext& ctx, const Tensor& params, const Tensor& given, int64_t axis,
                   int64_t batch_dims) {
  Tensor indices = given;
  if (given.dtype() == Dtype::kInt16) {
    ASSIGN_OR_RETURN(indices, ctx.Temp(Dtype::kInt32, given.shape()));
    std::copy_n(given.data<int16_t>(), given.num_elements(), indices.data<int32_t>());
  }
  ASSIGN_OR_RETURN(const GatherPlan plan,
                   PlanGather(params.shape(), indices.shape(), axis, batch_dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, plan.shape));
  // ResourceGather looks at its indices even where there is nothing to copy.
  if (plan.shape.num_elements() == 0 && ctx.input(0).dtype() != Dtype::kResource) return OkStatus();
  const auto gather = [&](const auto* index) -> Status {
    RETURN_IF_ERROR(CheckIndices(index, indices.shape(), plan.sizes.limit));
    if (plan.shape.num_elements() == 0) return OkStatus();
    GatherTyped(params.dtype(), params.raw(), index, plan.sizes, out->raw());
    return OkStatus();
  };
  return indices.dtype() == Dtype::kInt32 ? gather(indices.data<int32_t>())
                                          : gather(indices.data<int64_t>());
}

template <typename Index>
StatusOr<std::unique_ptr<BoundKernel>> BindGatherOf(const BindContext& context,
                                                    const GatherPlan& plan) {
  const BoundTensor& indices = context.inputs[1];
  // Those that every run has are looked at once.
  bool checks = true;
  if (indices.constant != nullptr) {
    const auto* all = static_cast<const Index*>(indices.constant->raw());
    if (!CheckIndices(all, indices.shape, plan.sizes.limit).ok()) return nullptr;
    checks = false;
  }
  return BindCall([dtype = context.inputs[0].dtype, sizes = plan.sizes, shape = indices.shape,
                   checks](const void* const* inputs, void* const* outputs, void*) -> Status {
    const auto* index = static_cast<const Index*>(inputs[1]);
    if (checks) RETURN_IF_ERROR(CheckIndices(index, shape, sizes.limit));
    GatherTyped(dtype, inputs[0], index, sizes, outputs[0]);
    return OkStatus();
  });
}

// What the run will refuse is left to it, and what has no elements. REQUIRES: 0 <= axis < rank of
// the params.
StatusOr<std::unique_ptr<BoundKernel>> BindGatherAlong(const BindContext& context, int64_t axis,
                                                       int64_t batch_dims) {
  const BoundTensor& params = context.inputs[0];
  const BoundTensor& indices = context.inputs[1];
  const auto plan = PlanGather(params.shape, indices.shape, axis, batch_dims);
  if (!plan.ok() || !IsPod(params.dtype) || !(plan->shape == context.outputs[0].shape) ||
      plan->shape.num_elements() == 0) {
    return nullptr;
  }
  if (indices.dtype == Dtype::kInt32) return BindGatherOf<int32_t>(context, *plan);
  if (indices.dtype == Dtype::kInt64) return BindGatherOf<int64_t>(context, *plan);
  return nullptr;
}

StatusOr<std::unique_ptr<BoundKernel>> BindGather(const IntAttrs&, const BindContext& context) {
  if (context.inputs[0].shape.rank() < 1) return nullptr;
  return BindGatherAlong(context, 0, 0);
}

Status RunGather(OpContext& ctx) {
  const Tensor& params = ctx.input(0);
  if (params.rank() < 1) return InvalidArgument("params must be at least 1 dimensional");
  return GatherAlong(ctx, params, ctx.input(1), 0, 0);
}

StatusOr<std::unique_ptr<KernelState>> PrepareGather(const Node& node) {
  return ReadIntAttrs(node, {"batch_dims"});
}

StatusOr<int64_t> GatherAxis(const Shape& params, const Tensor& axis) {
  if (params.rank() < 1) return InvalidArgument("params must be at least 1 dimensional");
  if (axis.rank() != 0) return InvalidArgument("axis must be scalar");
  const int64_t given = IndexAt(axis, 0);
  const int64_t a = given < 0 ? given + params.rank() : given;
  if (a < 0 || a >= params.rank()) {
    return InvalidArgument("Shape must be at least rank ", given < 0 ? -given : given + 1,
                           " but is rank ", params.rank());
  }
  return a;
}

Status RunGatherV2(OpContext& ctx) {
  const Tensor& params = ctx.input(0);
  ASSIGN_OR_RETURN(const int64_t axis, GatherAxis(params.shape(), ctx.input(2)));
  return GatherAlong(ctx, params, ctx.input(1), axis, ctx.state<IntAttrs>()[0]);
}

StatusOr<std::unique_ptr<BoundKernel>> BindGatherV2(const IntAttrs& attrs,
                                                    const BindContext& context) {
  const Tensor* given = context.inputs[2].constant;
  if (given == nullptr) return nullptr;
  const auto axis = GatherAxis(context.inputs[0].shape, *given);
  if (!axis.ok()) return nullptr;
  return BindGatherAlong(context, *axis, attrs[0]);
}
StatusOr<std::unique_ptr<KernelState>> PrepareGatherV2(const Node& node) {
  return ReadIntAttrs(node, {"batch_dims"}, BindGatherV2);
}

Status RunResourceGather(OpContext& ctx) {
  ASSIGN_OR_RETURN(const Tensor params, ReadPartOf(ctx));
  if (params.rank() < 1) return InvalidArgument("params must be at least 1 dimensional");
  const int64_t batch_dims = ctx.state<IntAttrs>()[0];
  if (batch_dims < 0 || batch_dims > ctx.input(1).rank()) {
    return InvalidArgument("Expected batch_dims in the range [0, ", ctx.input(1).rank(),
                           "], but got ", batch_dims);
  }
  if (batch_dims >= params.rank()) {
    return InvalidArgument("batch_dims (", batch_dims, ") must be less than rank(params) (",
                           params.rank(), ").");
  }
  if (ctx.input(1).num_elements() != 0 &&
      params.shape().Product(0, static_cast<int>(batch_dims)) == 0) {
    return InvalidArgument("Inner size of indices would result in batch_size of 0 and a division ",
                           "by 0 in the implementation. This is illegal");
  }
  return GatherAlong(ctx, params, ctx.input(1), batch_dims, batch_dims);
}

constexpr Kernel kGatherTable[] = {
    {"GatherV2", "", kAnyType, "movement:gather", RunGatherV2, PrepareGatherV2},
    {"Gather", "", kAnyType, "movement:gather", RunGather, PrepareBinding<BindGather>},
    {"ResourceGather", "", kAnyType, "movement:gather", RunResourceGather, PrepareGather},
};

}  // namespace

extern constinit const std::span<const Kernel> kGatherKernels = kGatherTable;

}  // namespace smelt
