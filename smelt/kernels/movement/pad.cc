// Pad, PadV2, MirrorPad and the gradient of MirrorPad.
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/common/transfers.h"

namespace smelt {
namespace {

Status CheckPaddings(const Shape& input, const Tensor& paddings, absl::string_view comma = " ") {
  if (paddings.rank() != 2 || paddings.dim(1) != 2) {
    return InvalidArgument("paddings must be a matrix with 2 columns: ",
                           paddings.shape().ToString());
  }
  if (paddings.dim(0) != input.rank()) {
    return InvalidArgument("The first dimension of paddings must be the rank of inputs",
                           paddings.shape().ToString(), comma, input.ToString());
  }
  return OkStatus();
}

StatusOr<Shape> PaddedShape(const Shape& input, const Tensor& paddings) {
  Dims dims;
  for (int i = 0; i < input.rank(); ++i) {
    const int64_t before = IndexAt(paddings, 2 * i), after = IndexAt(paddings, 2 * i + 1);
    if (before < 0 || after < 0) {
      return InvalidArgument("Paddings must be non-negative: ", before, " ", after);
    }
    int64_t size = 0;
    if (__builtin_add_overflow(before, input[i], &size) ||
        __builtin_add_overflow(after, size, &size)) {
      return InvalidArgument("Paddings are too large: ", before, " ", after);
    }
    dims.push_back(size);
  }
  return CheckedShape(dims);
}

// Calls fill(place in the result, loops) for what is padding and copy(place, loops) for the input.
// REQUIRES: the result, of `shape`, has elements.
template <typename Fill, typename Copy>
void ForEachPadPart(const Shape& input, const Tensor& paddings, const Shape& shape, Fill fill,
                    Copy copy) {
  const int rank = input.rank();
  if (input.num_elements() == 0) {
    const CopyDim all[] = {{shape.num_elements(), 1, 0}};
    return fill(int64_t{0}, std::span<const CopyDim>(all));
  }
  const Dims to = Strides(shape);
  const Dims from = Strides(input);
  // `inside` walks the input's places in the dimensions before d; the padding before and after them
  // in dimension d is contiguous and filled in one run.
  CopyDims inside;
  int64_t offset = 0;
  for (int d = 0; d < rank; ++d) {
    const int64_t before = IndexAt(paddings, 2 * d), after = IndexAt(paddings, 2 * d + 1);
    CopyDims edge = inside;
    for (CopyDim& loop : edge) loop.src = 0;
    edge.push_back({before * to[d], 1, 0});
    if (before > 0) fill(offset, std::span<const CopyDim>(edge));
    edge.back().size = after * to[d];
    if (after > 0) {
      fill(offset + (before + input[d]) * to[d], std::span<const CopyDim>(edge));
    }
    inside.push_back({input[d], to[d], from[d]});
    offset += before * to[d];
  }
  copy(offset, std::span<const CopyDim>(inside));
}

// Output 0: input 0 padded with copies of *value.
Status PadWith(OpContext& ctx, const void* value) {
  const Tensor& input = ctx.input(0);
  const Tensor& paddings = ctx.input(1);
  RETURN_IF_ERROR(CheckPaddings(input.shape(), paddings));
  ASSIGN_OR_RETURN(const Shape shape, PaddedShape(input.shape(), paddings));
  if (shape == input.shape()) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  const Dtype dtype = input.dtype();
  const auto part_from = [&](const void* from) {
    return [&, from](int64_t at, std::span<const CopyDim> loops) {
      CopyStrided(dtype, At(dtype, out->raw(), at), from, loops);
    };
  };
  ForEachPadPart(input.shape(), paddings, shape, part_from(value), part_from(input.raw()));
  return OkStatus();
}

// `has_value`: the value is input 2, and not zero.
template <bool kHasValue>
StatusOr<std::unique_ptr<BoundKernel>> BindPad(const IntAttrs&, const BindContext& context) {
  const BoundTensor& input = context.inputs[0];
  const Tensor* paddings = context.inputs[1].constant;
  if (paddings == nullptr || !IsPod(input.dtype)) return nullptr;
  if (kHasValue && context.inputs[2].shape.rank() != 0) return nullptr;
  if (!CheckPaddings(input.shape, *paddings).ok()) return nullptr;
  const auto shape = PaddedShape(input.shape, *paddings);
  if (!shape.ok() || !Fits(context, kHasValue ? 3 : 2, *shape)) return nullptr;
  if (*shape == input.shape) return BindWhole(0, context.outputs[0]);
  Transfers transfers(input.dtype);
  if (shape->num_elements() > 0) {
    const auto part_from = [&](int from) {
      return [&transfers, from](int64_t at, std::span<const CopyDim> loops) {
        transfers.Add(from, 0, 0, at, loops);
      };
    };
    ForEachPadPart(input.shape, *paddings, *shape, part_from(1), part_from(0));
  }
  return BindCall(
      [t = std::move(transfers)](const void* const* inputs, void* const* outputs, void*) {
        static constexpr Word16 kZero{0, 0};
        const void* const from[] = {inputs[0], kHasValue ? inputs[2] : &kZero};
        t.Run(from, outputs);
      });
}

Status RunPad(OpContext& ctx) {
  const Dtype dtype = ctx.input(0).dtype();
  if (IsPod(dtype)) {
    const Word16 zero{0, 0};
    return PadWith(ctx, &zero);
  }
  ASSIGN_OR_RETURN(const Tensor blank, ctx.Temp(dtype, Shape()));
  return PadWith(ctx, blank.raw());
}

Status RunPadV2(OpContext& ctx) {
  const Tensor& value = ctx.input(2);
  RETURN_IF_ERROR(CheckPaddings(ctx.input(0).shape(), ctx.input(1)));
  if (value.rank() != 0) {
    return InvalidArgument("constant_values must be a scalar. Found: ", value.shape().ToString());
  }
  return PadWith(ctx, value.raw());
}

StatusOr<std::unique_ptr<BoundKernel>> BindMirrorPad(const IntAttrs& attrs,
                                                     const BindContext& context);

// values[0]: 1 for REFLECT, which does not repeat the border element, 0 for SYMMETRIC, which does.
StatusOr<std::unique_ptr<KernelState>> PrepareMirrorPad(const Node& node) {
  const std::string mode = node.String("mode");
  auto state = std::make_unique<IntAttrs>();
  if (mode != "REFLECT" && mode != "SYMMETRIC") {
    return InvalidArgument("mode must be either REFLECT or SYMMETRIC.");
  }
  state->values[0] = mode == "REFLECT" ? 1 : 0;
  if (node.Is("MirrorPad")) state->bind = BindMirrorPad;
  return state;
}

// A padded dimension has three parts: the mirrored ends and the input between. `padded` and `inner`
// are where a part starts in the padded and the inner tensor, `step` is the direction in the inner
// one.
struct MirrorPart {
  int64_t size, padded, inner, step;
};
using MirrorParts = std::array<MirrorPart, 3>;

// Calls fn(loops, offset in the padded tensor, offset in the inner one) for every combination of
// parts; loops walk the padded side as dst.
template <typename F>
void ForEachMirrorPart(std::span<const MirrorParts> parts, const Shape& padded, const Shape& inner,
                       F fn) {
  const int rank = padded.rank();
  const Dims p = Strides(padded), q = Strides(inner);
  int combinations = 1;
  for (int d = 0; d < rank; ++d) combinations *= 3;
  for (int c = 0; c < combinations; ++c) {
    CopyDims loops;
    int64_t to = 0, from = 0;
    int rest = c;
    bool empty = false;
    for (int d = 0; d < rank; ++d, rest /= 3) {
      const MirrorPart& part = parts[d][rest % 3];
      empty = empty || part.size == 0;
      to += part.padded * p[d];
      from += part.inner * q[d];
      loops.push_back({part.size, p[d], part.step * q[d]});
    }
    if (!empty) fn(loops, to, from);
  }
}

StatusOr<absl::InlinedVector<MirrorParts, 5>> MirrorPartsOf(const Shape& inner,
                                                            const Tensor& paddings, int64_t skip,
                                                            absl::string_view what) {
  absl::InlinedVector<MirrorParts, 5> parts;
  for (int d = 0; d < inner.rank(); ++d) {
    const int64_t n = inner[d];
    const int64_t before = IndexAt(paddings, 2 * d), after = IndexAt(paddings, 2 * d + 1);
    if (before < 0 || after < 0) {
      return InvalidArgument("paddings must be non-negative: ", before, " ", after);
    }
    if (before > n - skip || after > n - skip) {
      return InvalidArgument("paddings must be ", skip == 1 ? "less than" : "no greater than",
                             " the ", what, " size: ", before, ", ", after,
                             skip == 1 ? " not less than " : " greater than ", n);
    }
    parts.push_back(MirrorParts{MirrorPart{before, 0, before - 1 + skip, -1},
                                MirrorPart{n, before, 0, 1},
                                MirrorPart{after, before + n, n - 1 - skip, -1}});
  }
  return parts;
}

Status RunMirrorPad(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& paddings = ctx.input(1);
  if (input.rank() > 5) {
    return Unimplemented("inputs rank not in [0,5]: ", input.rank());
  }
  RETURN_IF_ERROR(CheckPaddings(input.shape(), paddings, ", "));
  ASSIGN_OR_RETURN(const auto parts,
                   MirrorPartsOf(input.shape(), paddings, ctx.state<IntAttrs>()[0], "dimension"));
  ASSIGN_OR_RETURN(const Shape shape, PaddedShape(input.shape(), paddings));
  if (shape == input.shape()) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  const Dtype dtype = input.dtype();
  ForEachMirrorPart(
      parts, shape, input.shape(), [&](const CopyDims& loops, int64_t to, int64_t from) {
        CopyStrided(dtype, At(dtype, out->raw(), to), At(dtype, input.raw(), from), loops);
      });
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> BindMirrorPad(const IntAttrs& attrs,
                                                     const BindContext& context) {
  const BoundTensor& input = context.inputs[0];
  const Tensor* paddings = context.inputs[1].constant;
  if (paddings == nullptr || !IsPod(input.dtype) || input.shape.rank() > 5 ||
      !CheckPaddings(input.shape, *paddings).ok()) {
    return nullptr;
  }
  const auto parts = MirrorPartsOf(input.shape, *paddings, attrs[0], "dimension");
  const auto shape = PaddedShape(input.shape, *paddings);
  if (!parts.ok() || !shape.ok() || !Fits(context, 2, *shape)) return nullptr;
  if (*shape == input.shape) return BindWhole(0, context.outputs[0]);
  Transfers transfers(input.dtype);
  ForEachMirrorPart(*parts, *shape, input.shape,
                    [&](const CopyDims& loops, int64_t to, int64_t from) {
                      transfers.Add(0, from, 0, to, loops);
                    });
  return Transfers::Bind(std::move(transfers));
}

// into[sum(i_d * loops[d].src)] += from[sum(i_d * loops[d].dst)] for all i: many elements add to
// one.
template <typename T>
void AddMirrored(T* into, const T* from, std::span<const CopyDim> loops) {
  if (loops.empty()) {
    *into = AddValues(*into, *from);
    return;
  }
  const CopyDim& d = loops[0];
  for (int64_t i = 0; i < d.size; ++i) {
    AddMirrored(into + i * d.src, from + i * d.dst, loops.subspan(1));
  }
}

Status RunMirrorPadGrad(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& paddings = ctx.input(1);
  if (input.rank() > 5) {
    return Unimplemented("inputs rank not in [0,5]: ", input.rank());
  }
  RETURN_IF_ERROR(CheckPaddings(input.shape(), paddings));
  Dims dims;
  for (int d = 0; d < input.rank(); ++d) {
    const int64_t before = IndexAt(paddings, 2 * d), after = IndexAt(paddings, 2 * d + 1);
    if (before < 0 || after < 0) {
      return InvalidArgument("Paddings must be non-negative: ", before, ", ", after);
    }
    if (before > input.dim(d) || after > input.dim(d) - before) {
      return InvalidArgument("Total paddings must be less than the input dimension size: ",
                             static_cast<uint64_t>(before) + static_cast<uint64_t>(after),
                             " was not less than ", input.dim(d));
    }
    dims.push_back(input.dim(d) - before - after);
  }
  const Shape shape{std::span<const int64_t>(dims)};
  ASSIGN_OR_RETURN(const auto parts,
                   MirrorPartsOf(shape, paddings, ctx.state<IntAttrs>()[0], "output dimension"));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  ClearRun(out->dtype(), out->raw(), out->num_elements());
  if (shape.num_elements() == 0) return OkStatus();
  const bool known = VisitNumber(input.dtype(), [&]<typename T>() {
    ForEachMirrorPart(parts, input.shape(), shape,
                      [&](const CopyDims& loops, int64_t to, int64_t from) {
                        AddMirrored(out->data<T>() + from, input.data<T>() + to, loops);
                      });
  });
  return known ? OkStatus() : Unimplemented("MirrorPadGrad of type ", DtypeName(input.dtype()));
}

constexpr Kernel kPadTable[] = {
    {"Pad", "", kAnyType, "movement:pad", RunPad, PrepareBinding<BindPad<false>>},
    {"PadV2", "", kAnyType, "movement:pad", RunPadV2, PrepareBinding<BindPad<true>>},
    {"MirrorPad", "", kAnyType, "movement:mirror_pad", RunMirrorPad, PrepareMirrorPad},
    {"MirrorPadGrad", "T", kNumberTypes, "movement:mirror_pad", RunMirrorPadGrad, PrepareMirrorPad},
};

}  // namespace

extern constinit const std::span<const Kernel> kPadKernels = kPadTable;

}  // namespace smelt
