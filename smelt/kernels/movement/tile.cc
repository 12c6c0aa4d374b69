// Tile, BroadcastTo, Fill: elements repeated; Empty and DeepCopy.
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/transfers.h"

namespace smelt {
namespace {

// Repeats a tensor. The loops reach all of the result where it has elements.
struct RepeatPlan {
  Shape shape;
  CopyDims loops;
};

StatusOr<RepeatPlan> PlanTile(const Shape& input, const Tensor& multiples) {
  const int rank = input.rank();
  if (multiples.rank() != 1) {
    return InvalidArgument("Expected multiples to be 1-D, but got shape ",
                           multiples.shape().ToString());
  }
  if (multiples.num_elements() != rank) {
    return InvalidArgument("Expected multiples argument to be a vector of length ", rank,
                           " but got length ", multiples.num_elements());
  }
  Dims dims;
  for (int i = 0; i < rank; ++i) {
    const int64_t m = IndexAt(multiples, i);
    if (m < 0) return InvalidArgument("Expected multiples[", i, "] >= 0, but got ", m);
    int64_t size = 0;
    if (__builtin_mul_overflow(m, input[i], &size)) {
      return InvalidArgument("Encountered overflow when multiplying ", m, " with ", input[i],
                             ", result: -1");
    }
    dims.push_back(size);
  }
  int64_t elements = 1;
  for (int64_t d : dims) {
    const int64_t so_far = elements;
    if (__builtin_mul_overflow(elements, d, &elements)) {
      return InvalidArgument("Encountered overflow when multiplying ", so_far, " with ", d,
                             ", result: -1");
    }
  }
  RepeatPlan plan;
  ASSIGN_OR_RETURN(plan.shape, CheckedShape(dims));
  if (plan.shape.num_elements() == 0) return plan;
  const Dims to = Strides(plan.shape);
  const Dims from = Strides(input);
  for (int i = 0; i < rank; ++i) {
    plan.loops.push_back({IndexAt(multiples, i), input[i] * to[i], 0});
    plan.loops.push_back({input[i], to[i], from[i]});
  }
  return plan;
}

StatusOr<RepeatPlan> PlanBroadcastTo(const Shape& input, const Tensor& shape_tensor) {
  if (shape_tensor.rank() != 1) {
    return InvalidArgument("shape must be a vector of {int32,int64}, got shape ",
                           shape_tensor.shape().ToString());
  }
  RepeatPlan plan;
  ASSIGN_OR_RETURN(plan.shape, CheckedShape(IntsOf(shape_tensor)));
  const Shape& shape = plan.shape;
  const int missing = shape.rank() - input.rank();
  if (missing < 0) {
    return InvalidArgument("Rank of input (", input.rank(), ") must be no greater than rank of ",
                           "output shape (", shape.rank(), ").");
  }
  for (int i = 0; i < input.rank(); ++i) {
    if (input[i] != 1 && input[i] != shape[i + missing]) {
      return InvalidArgument("Incompatible shapes: ", input.ToString(), " vs. ", shape.ToString());
    }
  }
  if (shape.num_elements() == 0) return plan;
  const Dims to = Strides(shape);
  const Dims from = Strides(input);
  for (int i = 0; i < shape.rank(); ++i) {
    const int d = i - missing;
    plan.loops.push_back({shape[i], to[i], d < 0 || input[d] == 1 ? 0 : from[d]});
  }
  return plan;
}

using RepeatPlanner = StatusOr<RepeatPlan> (*)(const Shape& input, const Tensor& to);

template <RepeatPlanner kPlan>
Status RunRepeat(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  ASSIGN_OR_RETURN(const RepeatPlan plan, kPlan(input.shape(), ctx.input(1)));
  if (plan.shape == input.shape()) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, plan.shape));
  if (plan.shape.num_elements() == 0) return OkStatus();
  CopyStrided(input.dtype(), out->raw(), input.raw(), plan.loops);
  return OkStatus();
}

template <RepeatPlanner kPlan>
StatusOr<std::unique_ptr<BoundKernel>> BindRepeat(const IntAttrs&, const BindContext& context) {
  const BoundTensor& input = context.inputs[0];
  const Tensor* to = context.inputs[1].constant;
  if (to == nullptr || !IsPod(input.dtype)) return nullptr;
  const auto plan = kPlan(input.shape, *to);
  if (!plan.ok() || !Fits(context, 2, plan->shape)) return nullptr;
  if (plan->shape == input.shape) return BindWhole(0, context.outputs[0]);
  Transfers transfers(input.dtype);
  if (plan->shape.num_elements() > 0) transfers.Add(0, 0, 0, 0, plan->loops);
  return Transfers::Bind(std::move(transfers));
}

Status RunFill(OpContext& ctx) {
  const Tensor& dims = ctx.input(0);
  const Tensor& value = ctx.input(1);
  if (dims.rank() > 1) {
    return InvalidArgument("dims must represent a vector, got shape ", dims.shape().ToString());
  }
  if (value.rank() > 1 || value.num_elements() != 1) {
    return InvalidArgument("value must represent a scalar, got shape ", value.shape().ToString());
  }
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(IntsOf(dims)));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  FillRun(out->dtype(), out->raw(), value.raw(), out->num_elements());
  return OkStatus();
}

// Zeros even without attribute init, so that every run gives the same.
Status RunEmpty(OpContext& ctx) {
  const Tensor& dims = ctx.input(0);
  if (dims.rank() != 1) {
    return InvalidArgument("shape must be a vector of int32, got shape ", dims.shape().ToString());
  }
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(IntsOf(dims)));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  ClearRun(out->dtype(), out->raw(), out->num_elements());
  return OkStatus();
}

Status RunDeepCopy(OpContext& ctx) {
  Tensor in = ctx.TakeInput(0);
  if (!in.Writable()) {
    ASSIGN_OR_RETURN(in, in.Clone(ctx.step().allocator));
  }
  ctx.set_output(0, std::move(in));
  return OkStatus();
}

constexpr Kernel kTileTable[] = {
    {"Tile", "", kAnyType, "movement:tile", RunRepeat<PlanTile>,
     PrepareBinding<BindRepeat<PlanTile>>},
    {"BroadcastTo", "", kAnyType, "movement:broadcast_to", RunRepeat<PlanBroadcastTo>,
     PrepareBinding<BindRepeat<PlanBroadcastTo>>},
    {"Fill", "", kAnyType, "movement:fill", RunFill},
    {"Empty", "", kAnyType, "movement:fill", RunEmpty},
    {"DeepCopy", "", kAnyType, "movement:copy", RunDeepCopy},
    {"Copy", "", kAnyType, "movement:copy", RunDeepCopy},
    {"CopyHost", "", kAnyType, "movement:copy", RunDeepCopy},
};

}  // namespace

extern constinit const std::span<const Kernel> kTileKernels = kTileTable;

}  // namespace smelt
