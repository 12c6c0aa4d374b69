// Slice, StridedSlice, StridedSliceGrad, TensorStridedSliceUpdate.
#include <algorithm>
#include <optional>

#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/slice_spec.h"
#include "smelt/kernels/common/transfers.h"
#include "smelt/kernels/unsigned_int8.h"

namespace smelt {
namespace {

// What Slice and StridedSlice take: the elements that `loops` reach from element `first` on.
struct SlicePlan {
  Shape shape;
  bool whole = false;  // everything, in order
  bool rows = false;   // a range of dimension 0, in order, from row `row` on
  int64_t row = 0;
};
struct SliceLoops {
  int64_t first = 0;
  CopyDims loops;
};

StatusOr<SlicePlan> PlanSlice(const Shape& input, const Tensor& begin, const Tensor& size) {
  const int rank = input.rank();
  if (begin.rank() != 1 || size.rank() != 1 || begin.num_elements() != rank ||
      size.num_elements() != rank) {
    return InvalidArgument("Expected begin and size arguments to be 1-D tensors of size ", rank,
                           ", but got shapes ", begin.shape().ToString(), " and ",
                           size.shape().ToString(), " instead.");
  }
  SlicePlan plan;
  plan.rows = rank > 0;
  plan.whole = true;
  for (int i = 0; i < rank; ++i) {
    const int64_t dim = input[i];
    const int64_t b = IndexAt(begin, i);
    int64_t s = IndexAt(size, i);
    if (s == -1) s = dim - std::clamp<int64_t>(b, 0, dim);
    if (dim == 0) {
      if (b != 0 || s != 0) {
        return InvalidArgument("Expected begin[", i, "] == 0 (got ", b, ") and size[", i,
                               "] == 0 (got ", s, ") when input.dim_size(", i, ") == 0");
      }
    } else if (b < 0 || b > dim) {
      return InvalidArgument("Expected begin[", i, "] in [0, ", dim, "], but got ", b);
    } else if (s < 0 || s > dim - b) {
      return InvalidArgument("Expected size[", i, "] in [0, ", dim - b, "], but got ", s);
    }
    plan.shape.Add(s);
    plan.whole = plan.whole && s == dim;
    if (i > 0) plan.rows = plan.rows && s == dim;
  }
  if (rank > 0) plan.row = IndexAt(begin, 0);
  return plan;
}

// REQUIRES: the slice has elements.
SliceLoops LoopsOfSlice(const Shape& input, const Tensor& begin, const Shape& shape) {
  const Dims from = Strides(input);
  const Dims to = Strides(shape);
  SliceLoops slice;
  for (int i = 0; i < input.rank(); ++i) {
    slice.first += IndexAt(begin, i) * from[i];
    slice.loops.push_back({shape[i], to[i], from[i]});
  }
  return slice;
}

Status RunSlice(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  ASSIGN_OR_RETURN(const SlicePlan plan, PlanSlice(input.shape(), ctx.input(1), ctx.input(2)));
  if (plan.whole) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  if (plan.rows) {
    ASSIGN_OR_RETURN(ctx.output(0),
                     ShareOrCopyRows(ctx, input, plan.row, plan.row + plan.shape[0], plan.shape));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, plan.shape));
  if (plan.shape.num_elements() == 0) return OkStatus();
  const SliceLoops slice = LoopsOfSlice(input.shape(), ctx.input(1), plan.shape);
  CopyStrided(input.dtype(), out->raw(), At(input.dtype(), input.raw(), slice.first), slice.loops);
  return OkStatus();
}

std::unique_ptr<BoundKernel> BindSliceLoops(Dtype dtype, const SliceLoops& slice) {
  Transfers transfers(dtype);
  transfers.Add(0, slice.first, 0, 0, slice.loops);
  return Transfers::Bind(std::move(transfers));
}

StatusOr<std::unique_ptr<BoundKernel>> BindSlice(const IntAttrs&, const BindContext& context) {
  const BoundTensor& input = context.inputs[0];
  const Tensor* begin = context.inputs[1].constant;
  const Tensor* size = context.inputs[2].constant;
  if (begin == nullptr || size == nullptr || !IsPod(input.dtype)) return nullptr;
  const auto plan = PlanSlice(input.shape, *begin, *size);
  if (!plan.ok() || !Fits(context, 3, plan->shape)) return nullptr;
  if (plan->whole || plan->shape.num_elements() == 0) return BindWhole(0, context.outputs[0]);
  return BindSliceLoops(input.dtype, LoopsOfSlice(input.shape, *begin, plan->shape));
}

SliceLoops LoopsOfSlice(const Shape& input, const SliceSpec& spec) {
  const SlicePlaces from = PlacesOfSlice(input, spec);
  const Dims to = Strides(Shape(std::span<const int64_t>(spec.size)));
  SliceLoops slice;
  slice.first = from.first;
  for (int i = 0; i < input.rank(); ++i) {
    slice.loops.push_back({spec.size[i], to[i], from.steps[i]});
  }
  return slice;
}

struct StridedSliceState final : KernelState, UnsignedInt8 {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
  bool MayBeUnsigned(const BindContext& context) const override {
    return context.inputs[0].dtype == Dtype::kInt8 && SpecOf(context);
  }
  bool passes_on() const override { return true; }
  // nullopt: what is not bound.
  std::optional<SliceSpec> SpecOf(const BindContext& context) const;

  IntAttrs masks;
};

Status RunStridedSlice(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  SliceSpec spec;
  RETURN_IF_ERROR(ResolveSlice(input.shape(), ctx.input(1), ctx.input(2), ctx.input(3),
                               ctx.state<StridedSliceState>().masks, &spec));
  if (spec.whole) {
    ctx.set_output(0, ctx.TakeInput(0).WithShape(spec.shape));
    return OkStatus();
  }
  if (spec.shape.num_elements() > 0 && spec.rows) {
    ASSIGN_OR_RETURN(ctx.output(0), ShareOrCopyRows(ctx, input, spec.begin[0],
                                                    spec.begin[0] + spec.size[0], spec.shape));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, spec.shape));
  if (spec.shape.num_elements() == 0) return OkStatus();
  const SliceLoops slice = LoopsOfSlice(input.shape(), spec);
  CopyStrided(input.dtype(), out->raw(), At(input.dtype(), input.raw(), slice.first), slice.loops);
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> StridedSliceState::Bind(const BindContext& context) {
  const auto spec = SpecOf(context);
  if (!spec) return nullptr;
  if (spec->whole || spec->shape.num_elements() == 0) return BindWhole(0, context.outputs[0]);
  return BindSliceLoops(context.inputs[0].dtype, LoopsOfSlice(context.inputs[0].shape, *spec));
}

std::optional<SliceSpec> StridedSliceState::SpecOf(const BindContext& context) const {
  const BoundTensor& input = context.inputs[0];
  const std::span<const BoundTensor> ends = context.inputs.subspan(1);
  const bool constant =
      std::ranges::all_of(ends, [](const BoundTensor& t) { return t.constant != nullptr; });
  if (!constant || !IsPod(input.dtype)) return std::nullopt;
  SliceSpec spec;
  const Status resolved = ResolveSlice(input.shape, *ends[0].constant, *ends[1].constant,
                                       *ends[2].constant, masks, &spec);
  if (!resolved.ok() || !Fits(context, 4, spec.shape)) return std::nullopt;
  return spec;
}

StatusOr<std::unique_ptr<KernelState>> PrepareStridedSlice(const Node& node) {
  ASSIGN_OR_RETURN(const auto masks, ReadSliceMasks(node));
  auto state = std::make_unique<StridedSliceState>();
  state->masks = static_cast<const IntAttrs&>(*masks);
  return state;
}

Status RunStridedSliceGrad(OpContext& ctx) {
  const Tensor& shape_tensor = ctx.input(0);
  if (shape_tensor.rank() != 1) {
    return InvalidArgument("shape must be 1-D, got shape.shape = ",
                           shape_tensor.shape().ToString());
  }
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(IntsOf(shape_tensor)));
  SliceSpec spec;
  RETURN_IF_ERROR(
      ResolveSlice(shape, ctx.input(1), ctx.input(2), ctx.input(3), ctx.state<IntAttrs>(), &spec));
  const Tensor& dy = ctx.input(4);
  if (!(dy.shape() == spec.shape)) {
    return InvalidArgument("shape of dy was ", dy.shape().ToString(), " instead of ",
                           spec.shape.ToString());
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  ClearRun(out->dtype(), out->raw(), out->num_elements());
  return AssignSlice(*out, spec, dy);
}

Status RunTensorStridedSliceUpdate(OpContext& ctx) {
  SliceSpec spec;
  RETURN_IF_ERROR(ResolveSlice(ctx.input(0).shape(), ctx.input(1), ctx.input(2), ctx.input(3),
                               ctx.state<IntAttrs>(), &spec));
  if (spec.shape.num_elements() == 0) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  const Tensor& value = ctx.input(4);
  Tensor out = ctx.TakeInput(0);
  if (!out.Writable() || out.SharesBufferWith(value)) {
    ASSIGN_OR_RETURN(out, out.Clone(ctx.step().allocator));
  }
  RETURN_IF_ERROR(AssignSlice(out, spec, value));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

constexpr Kernel kSliceTable[] = {
    {"Slice", "", kAnyType, "movement:slice", RunSlice, PrepareBinding<BindSlice>},
    {"StridedSlice", "", kAnyType, "movement:strided_slice", RunStridedSlice, PrepareStridedSlice},
    {"StridedSliceGrad", "", kAnyType, "movement:strided_slice", RunStridedSliceGrad,
     ReadSliceMasks},
    {"TensorStridedSliceUpdate", "", kAnyType, "movement:strided_slice",
     RunTensorStridedSliceUpdate, ReadSliceMasks},
};

}  // namespace

extern constinit const std::span<const Kernel> kSliceKernels = kSliceTable;

}  // namespace smelt
