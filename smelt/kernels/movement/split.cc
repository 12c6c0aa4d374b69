// Taking a tensor apart along one dimension: Split, SplitV, Unpack.
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/transfers.h"

namespace smelt {
namespace {

// How a tensor is taken apart: output i gets sizes[i] slices of `axis`, one after another.
struct SplitPlan {
  int axis = 0;
  Dims sizes;
};

// The loops that copy `size` slices of `axis` out of a tensor.
struct PartLoops {
  PartLoops(const Shape& value, int axis, int64_t size)
      : inner(value.Product(axis + 1, value.rank())),
        loops{{value.Product(0, axis), size * inner, value[axis] * inner}, {size * inner, 1, 1}} {}
  int64_t elements() const { return loops[0].size * loops[1].size; }
  const int64_t inner;  // elements of a slice
  const CopyDim loops[2];
};

// Output i gets `size` slices of `axis` from `begin` on, under `shape`.
Status TakePart(OpContext& ctx, int i, const Tensor& value, int axis, int64_t begin, int64_t size,
                const Shape& shape) {
  const int64_t outer = value.shape().Product(0, axis);
  if (outer == 1) {
    // The dimensions before axis are all 1: the part is one run, which can be shared.
    Shape rows;
    for (int d = axis; d < value.rank(); ++d) rows.Add(value.dim(d));
    ASSIGN_OR_RETURN(Tensor part,
                     ShareOrCopyRows(ctx, value.WithShape(rows), begin, begin + size, shape));
    ctx.set_output(i, std::move(part));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(i, shape));
  if (shape.num_elements() == 0) return OkStatus();
  const Dtype dtype = value.dtype();
  const PartLoops part(value.shape(), axis, size);
  CopyStrided(dtype, out->raw(), At(dtype, value.raw(), begin * part.inner), part.loops);
  return OkStatus();
}

// Outputs as planned; `removes`: without the axis, whose sizes are 1.
Status TakeParts(OpContext& ctx, const Tensor& value, const SplitPlan& plan, bool removes) {
  Shape shape = value.shape();
  if (removes) shape.Remove(plan.axis);
  int64_t begin = 0;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const int64_t size = plan.sizes[static_cast<size_t>(i)];
    if (!removes) shape.Set(plan.axis, size);
    RETURN_IF_ERROR(TakePart(ctx, i, value, plan.axis, begin, size, shape));
    begin += size;
  }
  return OkStatus();
}

// The same bound. What the run will refuse is left to it.
StatusOr<std::unique_ptr<BoundKernel>> BindParts(const BindContext& context,
                                                 const BoundTensor& value, int input,
                                                 const StatusOr<SplitPlan>& plan) {
  if (!plan.ok() || !IsPod(value.dtype) || plan->sizes.size() != context.outputs.size()) {
    return nullptr;
  }
  Transfers transfers(value.dtype);
  int64_t begin = 0;
  for (size_t i = 0; i < plan->sizes.size(); ++i) {
    const int64_t size = plan->sizes[i];
    const PartLoops part(value.shape, plan->axis, size);
    if (context.outputs[i].shape.num_elements() != part.elements()) return nullptr;
    transfers.Add(input, begin * part.inner, static_cast<int>(i), 0, part.loops);
    begin += size;
  }
  return Transfers::Bind(std::move(transfers));
}

Status CheckSplitDim(const Tensor& split_dim, const Shape& value, int* axis) {
  if (split_dim.num_elements() != 1) {
    return InvalidArgument("split_dim_tensor must have exactly one element.");
  }
  const int64_t given = IndexAt(split_dim, 0);
  const int64_t d = given < 0 ? given + value.rank() : given;
  if (d < 0 || d >= value.rank()) {
    return InvalidArgument("-input rank(-", value.rank(), ") <= split_dim < input rank (",
                           value.rank(), "), but got ", given);
  }
  *axis = static_cast<int>(d);
  return OkStatus();
}

StatusOr<SplitPlan> PlanSplit(const Tensor& split_dim, const Shape& value, int n) {
  if (split_dim.rank() != 0) {
    return InvalidArgument("split_dim must be a scalar but has rank ", split_dim.rank());
  }
  SplitPlan plan;
  RETURN_IF_ERROR(CheckSplitDim(split_dim, value, &plan.axis));
  if (n == 0) return InvalidArgument("Number of ways to split should be > 0, but got ", n);
  const int64_t size = value[plan.axis];
  if (size % n != 0) {
    return InvalidArgument("Number of ways to split should evenly divide the split dimension, but ",
                           "got split_dim ", plan.axis, " (size = ", size, ") and num_split ", n);
  }
  plan.sizes.assign(static_cast<size_t>(n), size / n);
  return plan;
}

Status RunSplit(OpContext& ctx) {
  const Tensor& value = ctx.input(1);
  ASSIGN_OR_RETURN(const SplitPlan plan, PlanSplit(ctx.input(0), value.shape(), ctx.num_outputs()));
  return TakeParts(ctx, value, plan, false);
}

StatusOr<std::unique_ptr<BoundKernel>> BindSplit(const IntAttrs&, const BindContext& context) {
  const Tensor* axis = context.inputs[0].constant;
  if (axis == nullptr) return nullptr;
  const BoundTensor& value = context.inputs[1];
  return BindParts(context, value, 1,
                   PlanSplit(*axis, value.shape, static_cast<int>(context.outputs.size())));
}

StatusOr<SplitPlan> PlanSplitV(const Shape& value, const Tensor& sizes, const Tensor& split_dim,
                               int n) {
  if (split_dim.num_elements() != 1) {
    return InvalidArgument("split_dim_tensor must have exactly one element.");
  }
  if (sizes.rank() != 1 || sizes.num_elements() != n) {
    return InvalidArgument("size of the split_tensor must be 1-D and have the same elements as ",
                           "outputs got ", sizes.rank(), " -D and ", sizes.num_elements(),
                           " elements");
  }
  SplitPlan plan;
  RETURN_IF_ERROR(CheckSplitDim(split_dim, value, &plan.axis));
  const int64_t total = value[plan.axis];
  plan.sizes = IntsOf(sizes);
  Dims& parts = plan.sizes;
  if (n == 1 && parts[0] != -1 && parts[0] != total) {
    return InvalidArgument("If there is only one output, it must have the same size as the input. ",
                           "Input size: ", total, " output size: ", parts[0]);
  }
  int64_t known = 0;
  int unknown = -1;
  for (int i = 0; i < n; ++i) {
    if (parts[i] == -1) {
      if (unknown != -1) return InvalidArgument("There can only be one -1 in the input.");
      unknown = i;
    } else if (parts[i] < 0) {
      return InvalidArgument("Split size at index ", i, " must be >= 0. Got: ", parts[i]);
    } else if (__builtin_add_overflow(known, parts[i], &known)) {
      return InvalidArgument("The sizes of size_splits are too large");
    }
  }
  if (unknown == -1 ? known != total : known > total) {
    return InvalidArgument(
        "Determined shape must either match input shape along split_dim exactly if fully ",
        "specified, or be less than the size of the input along split_dim if not fully ",
        "specified.  Got: ", known);
  }
  if (unknown != -1) parts[unknown] = total - known;
  return plan;
}

Status RunSplitV(OpContext& ctx) {
  const Tensor& value = ctx.input(0);
  ASSIGN_OR_RETURN(const SplitPlan plan,
                   PlanSplitV(value.shape(), ctx.input(1), ctx.input(2), ctx.num_outputs()));
  return TakeParts(ctx, value, plan, false);
}

StatusOr<std::unique_ptr<BoundKernel>> BindSplitV(const IntAttrs&, const BindContext& context) {
  const BoundTensor& value = context.inputs[0];
  const Tensor* sizes = context.inputs[1].constant;
  const Tensor* axis = context.inputs[2].constant;
  if (sizes == nullptr || axis == nullptr) return nullptr;
  const auto n = static_cast<int>(context.outputs.size());
  return BindParts(context, value, 0, PlanSplitV(value.shape, *sizes, *axis, n));
}

StatusOr<SplitPlan> PlanUnpack(const Shape& value, int64_t given, int n) {
  const int rank = value.rank();
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) {
    return InvalidArgument("axis = ", given, " not in [", -rank, ", ", rank, ")");
  }
  SplitPlan plan;
  plan.axis = static_cast<int>(axis);
  if (value[plan.axis] != n) {
    return InvalidArgument("Input shape axis ", axis, " must equal ", n, ", got shape ",
                           value.ToString());
  }
  plan.sizes.assign(static_cast<size_t>(n), 1);
  return plan;
}

Status RunUnpack(OpContext& ctx) {
  const Tensor& value = ctx.input(0);
  ASSIGN_OR_RETURN(const SplitPlan plan,
                   PlanUnpack(value.shape(), ctx.state<IntAttrs>()[0], ctx.num_outputs()));
  return TakeParts(ctx, value, plan, true);
}

StatusOr<std::unique_ptr<BoundKernel>> BindUnpack(const IntAttrs& attrs,
                                                  const BindContext& context) {
  const BoundTensor& value = context.inputs[0];
  const auto n = static_cast<int>(context.outputs.size());
  return BindParts(context, value, 0, PlanUnpack(value.shape, attrs[0], n));
}

StatusOr<std::unique_ptr<KernelState>> PrepareUnpack(const Node& node) {
  return ReadIntAttrs(node, {"axis"}, BindUnpack);
}

constexpr Kernel kSplitTable[] = {
    {"Split", "", kAnyType, "movement:split", RunSplit, PrepareBinding<BindSplit>},
    {"SplitV", "", kAnyType, "movement:split", RunSplitV, PrepareBinding<BindSplitV>},
    {"Unpack", "", kAnyType, "movement:unpack", RunUnpack, PrepareUnpack},
};

}  // namespace

extern constinit const std::span<const Kernel> kSplitKernels = kSplitTable;

}  // namespace smelt
