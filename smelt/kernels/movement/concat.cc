// Putting tensors side by side: Concat, ConcatV2, Pack, ParallelConcat.
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/transfers.h"

namespace smelt {
namespace {

// What is joined.
using JoinedShapes = absl::InlinedVector<const Shape*, 8>;

// The result of tensors that lie side by side along `axis`.
struct JoinPlan {
  Shape shape;
  int axis = 0;
};

// Each part is seen as [outer, width_i] with the same outer, the result as [outer, sum of widths].
// Calls fn(i, elements of the result before part i, loops) for the parts that have elements.
template <typename F>
void ForEachJoined(const JoinPlan& plan, const JoinedShapes& parts, F fn) {
  if (plan.shape.num_elements() == 0) return;
  const int64_t outer = plan.shape.Product(0, plan.axis);
  const int64_t row = plan.shape.num_elements() / outer;
  int64_t at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t width = parts[i]->num_elements() / outer;
    if (width == 0) continue;
    const CopyDim loops[] = {{outer, row, width}, {width, 1, 1}};
    fn(static_cast<int>(i), at, std::span<const CopyDim>(loops));
    at += width;
  }
}

JoinedShapes ShapesOf(const OpContext& ctx, int first, int n) {
  JoinedShapes shapes;
  for (int i = first; i < first + n; ++i) shapes.push_back(&ctx.input(i).shape());
  return shapes;
}

// Output 0: inputs from `first` on, as planned for them.
Status JoinInputs(OpContext& ctx, int first, const JoinedShapes& parts, const JoinPlan& plan) {
  const auto n = static_cast<int>(parts.size());
  int full = -1;
  int with_elements = 0;
  for (int i = first; i < first + n; ++i) {
    if (ctx.input(i).num_elements() > 0) {
      ++with_elements;
      full = i;
    }
  }
  if (with_elements == 1) {
    ctx.set_output(0, ctx.TakeInput(full).WithShape(plan.shape));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, plan.shape));
  const Dtype dtype = out->dtype();
  ForEachJoined(plan, parts, [&](int i, int64_t at, std::span<const CopyDim> loops) {
    CopyStrided(dtype, At(dtype, out->raw(), at), ctx.input(first + i).raw(), loops);
  });
  return OkStatus();
}

// What the run will refuse is left to it.
StatusOr<std::unique_ptr<BoundKernel>> BindJoin(const BindContext& context, int first,
                                                const JoinedShapes& parts,
                                                const StatusOr<JoinPlan>& plan) {
  const BoundTensor& out = context.outputs[0];
  if (!plan.ok() || !IsPod(out.dtype) || !(plan->shape == out.shape)) return nullptr;
  Transfers transfers(out.dtype);
  ForEachJoined(*plan, parts, [&](int i, int64_t at, std::span<const CopyDim> loops) {
    transfers.Add(first + i, 0, 0, at, loops);
  });
  return Transfers::Bind(std::move(transfers));
}

JoinedShapes ShapesOf(const BindContext& context, size_t first, size_t n) {
  JoinedShapes shapes;
  for (const BoundTensor& t : context.inputs.subspan(first, n)) shapes.push_back(&t.shape);
  return shapes;
}

StatusOr<JoinPlan> PlanConcat(const JoinedShapes& parts, const Tensor& axis_tensor,
                              absl::string_view axis_name) {
  if (axis_tensor.num_elements() != 1 || axis_tensor.rank() > 1) {
    return InvalidArgument(axis_name, " tensor should be a scalar integer, but got shape ",
                           axis_tensor.shape().ToString());
  }
  const Shape& model = *parts[0];
  const int rank = model.rank();
  // As in TensorFlow, only the low 32 bits of a wider number count.
  const int64_t given = static_cast<int32_t>(IndexAt(axis_tensor, 0));
  const int64_t axis = given < 0 ? given + rank : given;
  // Scalars are refused below, with TensorFlow's text for them.
  if ((axis < 0 || axis >= rank) && (rank > 0 || given != 0)) {
    return InvalidArgument("ConcatOp : Expected concatenating dimensions in the range [", -rank,
                           ", ", rank, "), but got ", given);
  }
  int64_t total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Shape& shape = *parts[i];
    if (shape.rank() == 0) {
      return InvalidArgument("ConcatOp : Can't concatenate scalars (use tf.stack instead)");
    }
    if (shape.rank() != rank) {
      return InvalidArgument("ConcatOp : Ranks of all input tensors should match: shape[0] = ",
                             model.ToString(), " vs. shape[", i, "] = ", shape.ToString());
    }
    for (int d = 0; d < rank; ++d) {
      if (d != axis && shape[d] != model[d]) {
        return InvalidArgument("ConcatOp : Dimension ", d,
                               " in both shapes must be equal: ", "shape[0] = ", model.ToString(),
                               " vs. shape[", i, "] = ", shape.ToString());
      }
    }
    if (__builtin_add_overflow(total, shape[static_cast<int>(axis)], &total)) {
      return InvalidArgument("ConcatOp : the result would have too many elements");
    }
  }
  Dims dims(model.dims().begin(), model.dims().end());
  dims[axis] = total;
  JoinPlan plan;
  plan.axis = static_cast<int>(axis);
  ASSIGN_OR_RETURN(plan.shape, Shape::Make(dims));
  return plan;
}

Status RunConcatFrom(OpContext& ctx, int first, int axis, absl::string_view axis_name) {
  const JoinedShapes parts = ShapesOf(ctx, first, ctx.num_inputs() - 1);
  ASSIGN_OR_RETURN(const JoinPlan plan, PlanConcat(parts, ctx.input(axis), axis_name));
  return JoinInputs(ctx, first, parts, plan);
}
Status RunConcat(OpContext& ctx) { return RunConcatFrom(ctx, 1, 0, "concat_dim"); }
Status RunConcatV2(OpContext& ctx) { return RunConcatFrom(ctx, 0, ctx.num_inputs() - 1, "axis"); }

// axis_first: as Concat has it, which is else ConcatV2.
template <bool kAxisFirst>
StatusOr<std::unique_ptr<BoundKernel>> BindConcat(const IntAttrs&, const BindContext& context) {
  const size_t n = context.inputs.size() - 1, first = kAxisFirst ? 1 : 0;
  const Tensor* axis = context.inputs[kAxisFirst ? 0 : n].constant;
  if (axis == nullptr || n == 0) return nullptr;
  const JoinedShapes parts = ShapesOf(context, first, n);
  return BindJoin(context, static_cast<int>(first), parts, PlanConcat(parts, *axis, "axis"));
}

StatusOr<JoinPlan> PlanPack(const JoinedShapes& parts, int64_t given) {
  const Shape& model = *parts[0];
  const auto n = static_cast<int>(parts.size());
  const int rank = model.rank() + 1;
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) {
    return InvalidArgument("axis = ", given, " not in [", -rank, ", ", rank, ")");
  }
  for (int i = 1; i < n; ++i) {
    const Shape& shape = *parts[static_cast<size_t>(i)];
    if (!(shape == model)) {
      return InvalidArgument("Shapes of all inputs must match: values[0].shape = ",
                             model.ToString(), " != values[", i, "].shape = ", shape.ToString());
    }
  }
  Dims dims(model.dims().begin(), model.dims().end());
  dims.insert(dims.begin() + axis, n);
  JoinPlan plan;
  plan.axis = static_cast<int>(axis);
  ASSIGN_OR_RETURN(plan.shape, Shape::Make(dims));
  return plan;
}

Status RunPack(OpContext& ctx) {
  const JoinedShapes parts = ShapesOf(ctx, 0, ctx.num_inputs());
  ASSIGN_OR_RETURN(const JoinPlan plan, PlanPack(parts, ctx.state<IntAttrs>()[0]));
  return JoinInputs(ctx, 0, parts, plan);
}

StatusOr<std::unique_ptr<BoundKernel>> BindPack(const IntAttrs& attrs, const BindContext& context) {
  const JoinedShapes parts = ShapesOf(context, 0, context.inputs.size());
  if (parts.empty()) return nullptr;
  return BindJoin(context, 0, parts, PlanPack(parts, attrs[0]));
}

StatusOr<std::unique_ptr<KernelState>> PreparePack(const Node& node) {
  return ReadIntAttrs(node, {"axis"}, BindPack);
}

Status RunParallelConcat(OpContext& ctx) {
  int64_t rows = 0;
  const Shape& model = ctx.input(0).shape();
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Shape& shape = ctx.input(i).shape();
    if (shape.rank() == 0 || shape[0] != 1) {
      return InvalidArgument("Size of first dimension of input ", i, " must be 1, is of shape ",
                             shape.ToString());
    }
    if (!(shape == model)) {
      return InvalidArgument("Shapes of all inputs must match: values[0].shape = ",
                             model.ToString(), " != values[", i, "].shape = ", shape.ToString());
    }
    rows += shape[0];
  }
  Dims dims(model.dims().begin(), model.dims().end());
  dims[0] = rows;
  JoinPlan plan;
  ASSIGN_OR_RETURN(plan.shape, Shape::Make(dims));
  return JoinInputs(ctx, 0, ShapesOf(ctx, 0, ctx.num_inputs()), plan);
}

constexpr Kernel kConcatTable[] = {
    {"ConcatV2", "", kAnyType, "movement:concat", RunConcatV2, PrepareBinding<BindConcat<false>>},
    {"Concat", "", kAnyType, "movement:concat", RunConcat, PrepareBinding<BindConcat<true>>},
    {"Pack", "", kAnyType, "movement:pack", RunPack, PreparePack},
    {"ParallelConcat", "", kAnyType, "movement:concat", RunParallelConcat},
};

}  // namespace

extern constinit const std::span<const Kernel> kConcatKernels = kConcatTable;

}  // namespace smelt
