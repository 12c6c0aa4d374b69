// SpaceToBatch, BatchToSpace (and ND), SpaceToDepth, DepthToSpace.
#include <algorithm>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/transfers.h"

namespace smelt {
namespace {

// Both directions copy between the same places: element (offset * batch + b, c..., rest) of the
// "batch" side is element (b, c * block + offset - before..., rest) of the "space" side.
struct SpaceBlocks {
  int64_t batch;       // of the space side
  Dims block, before;  // by spatial dimension: block size; padding or crop at the start
  Dims space, cells;   // sizes of the spatial dimensions of the space and the batch side
  int64_t rest;        // elements in the dimensions after the spatial ones
};

// Copies all blocks. to_batch: the batch side is dst. Places outside the space side are left alone.
void CopyBlocks(Dtype dtype, const SpaceBlocks& s, bool to_batch, void* dst, const void* src) {
  const auto m = static_cast<int>(s.block.size());
  int64_t blocks = 1;
  for (int64_t b : s.block) blocks *= b;
  Dims space_stride(m), cell_stride(m);
  int64_t space_size = s.rest, cell_size = s.rest;
  for (int d = m; d-- > 0;) {
    space_stride[d] = space_size;
    cell_stride[d] = cell_size;
    space_size *= s.space[d];
    cell_size *= s.cells[d];
  }
  for (int64_t k = 0; k < blocks; ++k) {
    CopyDims loops;
    auto add = [&](int64_t size, int64_t batch_side, int64_t space_side) {
      loops.push_back(to_batch ? CopyDim{size, batch_side, space_side}
                               : CopyDim{size, space_side, batch_side});
    };
    add(s.batch, cell_size, space_size);
    int64_t batch_at = k * s.batch * cell_size, space_at = 0;
    int64_t rest = k;
    Dims offset(m);
    for (int d = m; d-- > 0;) {
      offset[d] = rest % s.block[d];
      rest /= s.block[d];
    }
    bool any = true;
    for (int d = 0; d < m; ++d) {
      // The cells c in [first, end) are those with 0 <= c * block + offset - before < space.
      const int64_t shift = s.before[d] - offset[d];
      const int64_t first = shift <= 0 ? 0 : (shift + s.block[d] - 1) / s.block[d];
      const int64_t end =
          s.space[d] + shift <= 0
              ? 0
              : std::min(s.cells[d], (s.space[d] + shift + s.block[d] - 1) / s.block[d]);
      if (first >= end) {
        any = false;
        break;
      }
      add(end - first, cell_stride[d], s.block[d] * space_stride[d]);
      batch_at += first * cell_stride[d];
      space_at += (first * s.block[d] - shift) * space_stride[d];
    }
    if (!any) continue;
    add(s.rest, 1, 1);
    if (to_batch) {
      CopyStrided(dtype, At(dtype, dst, batch_at), At(dtype, src, space_at), loops);
    } else {
      CopyStrided(dtype, At(dtype, dst, space_at), At(dtype, src, batch_at), loops);
    }
  }
}

struct SpacePlan {
  Shape shape;
  bool clears = false;  // not all of the result comes from the input
  bool copies = false;  // something does
  SpaceBlocks blocks;
};

// SpaceToBatch, BatchToSpace and their ND forms, of an input and at least one block. `amounts` are
// the paddings or the crops.
StatusOr<SpacePlan> PlanSpace(const Shape& input, const Dims& block_shape, const Tensor& amounts,
                              bool to_batch) {
  const absl::string_view what = to_batch ? "paddings" : "crops";
  const auto m = static_cast<int>(block_shape.size());
  if (input.rank() < 1 + m) {
    return InvalidArgument("input rank should be >= ", 1 + m, " instead of ", input.rank());
  }
  if (amounts.rank() != 2 || amounts.dim(0) != m || amounts.dim(1) != 2) {
    return InvalidArgument(what, " should have shape [", m, ", 2] instead of ",
                           amounts.shape().ToString());
  }
  int64_t blocks = 1;
  for (int64_t b : block_shape) {
    if (__builtin_mul_overflow(blocks, b, &blocks)) {
      return InvalidArgument("Product of block sizes must be less than 2**63");
    }
  }
  if (!to_batch && blocks <= 0) {
    return InvalidArgument("Product of block sizes must be positive, got ", blocks);
  }
  for (int d = 0; d < m; ++d) {
    if (block_shape[d] < 1) {
      return InvalidArgument("All values in block_shape must be positive, got value, ",
                             block_shape[d], " at index ", d, ".");
    }
  }
  SpacePlan plan;
  if (m == 0) {
    plan.shape = input;
    return plan;
  }
  SpaceBlocks& s = plan.blocks;
  s.block = block_shape;
  Dims dims;
  if (to_batch) {
    int64_t batch = 0;
    if (__builtin_mul_overflow(blocks, input[0], &batch)) {
      return InvalidArgument("The result would have too many elements");
    }
    s.batch = input[0];
    dims.push_back(batch);
  } else {
    if (input[0] % blocks != 0) {
      return InvalidArgument("Input batch dimension (", input[0],
                             ") is not divisible by product of block sizes (", blocks, ")");
    }
    s.batch = input[0] / blocks;
    dims.push_back(s.batch);
  }
  for (int d = 0; d < m; ++d) {
    const int64_t before = IndexAt(amounts, 2 * d), after = IndexAt(amounts, 2 * d + 1);
    const int64_t size = input[d + 1], b = block_shape[d];
    if (before < 0 || after < 0) {
      return InvalidArgument(to_batch ? "Paddings" : "Crops", " must be non-negative");
    }
    int64_t full = 0;
    if (to_batch) {
      if (__builtin_add_overflow(size, before, &full) ||
          __builtin_add_overflow(full, after, &full)) {
        return InvalidArgument("Paddings are too large");
      }
      if (full % b != 0) {
        return InvalidArgument("padded_shape[", d, "]=", full, " is not divisible by block_shape[",
                               d, "]=", b);
      }
      s.space.push_back(size);
      s.cells.push_back(full / b);
      dims.push_back(full / b);
    } else {
      if (__builtin_mul_overflow(size, b, &full) || before > full || after > full - before) {
        return InvalidArgument("cropped_shape[", d, "]=", full - before - after,
                               " must be non-negative");
      }
      s.space.push_back(full - before - after);
      s.cells.push_back(size);
      dims.push_back(full - before - after);
    }
    s.before.push_back(before);
  }
  for (int d = m + 1; d < input.rank(); ++d) dims.push_back(input[d]);
  ASSIGN_OR_RETURN(plan.shape, CheckedShape(dims));
  plan.clears = to_batch && plan.shape.num_elements() != input.num_elements();
  plan.copies = plan.shape.num_elements() > 0 && input.num_elements() > 0;
  s.rest = input.Product(m + 1, input.rank());
  return plan;
}

void ComputeSpace(Dtype dtype, const SpacePlan& plan, bool to_batch, const void* in, void* out) {
  if (plan.clears) ClearRun(dtype, out, plan.shape.num_elements());
  if (plan.copies) CopyBlocks(dtype, plan.blocks, to_batch, out, in);
}

Status MoveSpace(OpContext& ctx, const Dims& block_shape, const Tensor& amounts, bool to_batch) {
  const Tensor& input = ctx.input(0);
  ASSIGN_OR_RETURN(const SpacePlan plan, PlanSpace(input.shape(), block_shape, amounts, to_batch));
  if (block_shape.empty()) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, plan.shape));
  ComputeSpace(input.dtype(), plan, to_batch, input.raw(), out->raw());
  return OkStatus();
}

// `amounts`: which input they are.
StatusOr<std::unique_ptr<BoundKernel>> BindSpace(const BindContext& context,
                                                 const Dims& block_shape, size_t amounts,
                                                 bool to_batch) {
  const BoundTensor& input = context.inputs[0];
  const Tensor* given = context.inputs[amounts].constant;
  if (given == nullptr || !IsPod(input.dtype)) return nullptr;
  auto plan = PlanSpace(input.shape, block_shape, *given, to_batch);
  if (!plan.ok() || !Fits(context, amounts + 1, plan->shape)) return nullptr;
  if (block_shape.empty()) return BindWhole(0, context.outputs[0]);
  return BindCall([dtype = input.dtype, plan = *std::move(plan), to_batch](
                      const void* const* inputs, void* const* outputs, void*) {
    ComputeSpace(dtype, plan, to_batch, inputs[0], outputs[0]);
  });
}

template <bool kToBatch>
Status RunSpaceNd(OpContext& ctx) {
  const Tensor& block = ctx.input(1);
  if (block.rank() != 1) {
    return InvalidArgument("block_shape rank should be 1 instead of ", block.rank());
  }
  return MoveSpace(ctx, IntsOf(block), ctx.input(2), kToBatch);
}

template <bool kToBatch>
StatusOr<std::unique_ptr<BoundKernel>> BindSpaceNd(const IntAttrs&, const BindContext& context) {
  const Tensor* block = context.inputs[1].constant;
  if (block == nullptr || block->rank() != 1) return nullptr;
  return BindSpace(context, IntsOf(*block), 2, kToBatch);
}

template <bool kToBatch>
StatusOr<std::unique_ptr<BoundKernel>> BindSpace2d(const IntAttrs& attrs,
                                                   const BindContext& context) {
  if (context.inputs[0].shape.rank() != 4) return nullptr;
  return BindSpace(context, {attrs[0], attrs[0]}, 1, kToBatch);
}

template <bool kToBatch>
StatusOr<std::unique_ptr<KernelState>> PrepareSpace2d(const Node& node) {
  ASSIGN_OR_RETURN(auto state, ReadIntAttrs(node, {"block_size"}, BindSpace2d<kToBatch>));
  const int64_t size = static_cast<IntAttrs&>(*state)[0];
  if (size < 2) return InvalidArgument("Block size should be > 1: ", size);
  return state;
}

template <bool kToBatch>
Status RunSpace2d(OpContext& ctx) {
  const int64_t size = ctx.state<IntAttrs>()[0];
  if (ctx.input(0).rank() != 4) {
    return InvalidArgument("Input rank should be: ", 4, "instead of: ", ctx.input(0).rank());
  }
  return MoveSpace(ctx, {size, size}, ctx.input(1), kToBatch);
}

template <bool kToDepth>
StatusOr<std::unique_ptr<BoundKernel>> BindDepth(const IntAttrs& attrs, const BindContext& context);

template <bool kToDepth>
StatusOr<std::unique_ptr<KernelState>> PrepareDepth(const Node& node) {
  ASSIGN_OR_RETURN(auto state, ReadIntAttrs(node, {"block_size"}, BindDepth<kToDepth>));
  auto& ints = static_cast<IntAttrs&>(*state);
  if (ints[0] <= 1) return InvalidArgument("Block size should be > 1, but was: ", ints[0]);
  if (ints[0] > (int64_t{1} << 30)) return InvalidArgument("Block size is too large: ", ints[0]);
  const std::string format = node.String("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW") {
    return InvalidArgument("Only NHWC and NCHW data_format supported on CPU. Got ", format);
  }
  ints.values[1] = format == "NCHW" ? 1 : 0;
  return state;
}

// The loops reach all of the result where it has elements.
struct DepthPlan {
  Shape shape;
  CopyDims loops;
};

// to_depth: [N, H*b, W*b, C] -> [N, H, W, b*b*C], and back.
template <bool kToDepth>
StatusOr<DepthPlan> PlanDepth(const Shape& input, const IntAttrs& attrs) {
  const int64_t b = attrs[0];
  const bool channels_first = attrs[1] != 0;
  if (input.rank() != 4) {
    const absl::string_view colon = kToDepth ? "" : ":";
    return InvalidArgument("Input rank should be", colon, " 4 instead of", colon, " ",
                           input.rank());
  }
  const int ch = channels_first ? 1 : 3, hh = channels_first ? 2 : 1, ww = hh + 1;
  const int64_t n = input[0], in_h = input[hh], in_w = input[ww], in_c = input[ch];
  // The side with larger images and fewer channels is called fine, the other coarse. h and w are
  // the coarse side's, c is the fine side's.
  int64_t h = in_h, w = in_w, c = in_c;
  if (kToDepth) {
    if (in_w % b != 0 || in_h % b != 0) {
      return InvalidArgument("Image width ", in_w, " and height ", in_h,
                             " should be divisible by block_size: ", b);
    }
    h /= b;
    w /= b;
  } else {
    if (in_c % (b * b) != 0) {
      return InvalidArgument("Input depth dimension ", in_c, " should be divisible by: ", b * b);
    }
    c /= b * b;
  }
  Dims dims(4);
  dims[0] = n;
  int64_t out_h = h, out_w = w, out_c = c;
  if (__builtin_mul_overflow(kToDepth ? c : h, kToDepth ? b * b : b, kToDepth ? &out_c : &out_h) ||
      (!kToDepth && __builtin_mul_overflow(w, b, &out_w))) {
    return InvalidArgument("The result would have too many elements");
  }
  dims[hh] = out_h;
  dims[ww] = out_w;
  dims[ch] = out_c;
  DepthPlan plan;
  ASSIGN_OR_RETURN(plan.shape, CheckedShape(dims));
  if (plan.shape.num_elements() == 0) return plan;
  // Strides of (n, h, block row, w, block column, c) on the fine and the coarse side.
  struct Step {
    int64_t size, fine, coarse;
  };
  const int64_t image = h * b * w * b * c, hw = h * w;
  const Step steps[6] = {
      {n, image, image},
      {h, channels_first ? b * w * b : b * w * b * c, channels_first ? w : w * b * b * c},
      {b, channels_first ? w * b : w * b * c, channels_first ? b * c * hw : b * c},
      {w, channels_first ? b : b * c, channels_first ? 1 : b * b * c},
      {b, channels_first ? 1 : c, channels_first ? c * hw : c},
      {c, channels_first ? h * b * w * b : 1, channels_first ? hw : 1}};
  // Loops in the order of the output's dimensions, so that it is written front to back.
  constexpr int kFineLast[6] = {0, 1, 2, 3, 4, 5}, kFineFirst[6] = {0, 5, 1, 2, 3, 4};
  constexpr int kCoarseLast[6] = {0, 1, 3, 2, 4, 5}, kCoarseFirst[6] = {0, 2, 4, 5, 1, 3};
  const int* order = kToDepth ? (channels_first ? kCoarseFirst : kCoarseLast)
                              : (channels_first ? kFineFirst : kFineLast);
  for (int i = 0; i < 6; ++i) {
    const Step& s = steps[order[i]];
    plan.loops.push_back(kToDepth ? CopyDim{s.size, s.coarse, s.fine}
                                  : CopyDim{s.size, s.fine, s.coarse});
  }
  return plan;
}

template <bool kToDepth>
Status RunDepth(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  ASSIGN_OR_RETURN(const DepthPlan plan, PlanDepth<kToDepth>(input.shape(), ctx.state<IntAttrs>()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, plan.shape));
  if (plan.shape.num_elements() == 0) return OkStatus();
  CopyStrided(input.dtype(), out->raw(), input.raw(), plan.loops);
  return OkStatus();
}

template <bool kToDepth>
StatusOr<std::unique_ptr<BoundKernel>> BindDepth(const IntAttrs& attrs,
                                                 const BindContext& context) {
  const BoundTensor& input = context.inputs[0];
  const auto plan = PlanDepth<kToDepth>(input.shape, attrs);
  if (!plan.ok() || !IsPod(input.dtype) || !Fits(context, 1, plan->shape)) return nullptr;
  Transfers transfers(input.dtype);
  if (plan->shape.num_elements() > 0) transfers.Add(0, 0, 0, 0, plan->loops);
  return Transfers::Bind(std::move(transfers));
}

constexpr Kernel kSpaceTable[] = {
    {"SpaceToBatchND", "", kAnyType, "movement:space_to_batch", RunSpaceNd<true>,
     PrepareBinding<BindSpaceNd<true>>},
    {"BatchToSpaceND", "", kAnyType, "movement:space_to_batch", RunSpaceNd<false>,
     PrepareBinding<BindSpaceNd<false>>},
    {"SpaceToBatch", "", kAnyType, "movement:space_to_batch", RunSpace2d<true>,
     PrepareSpace2d<true>},
    {"BatchToSpace", "", kAnyType, "movement:space_to_batch", RunSpace2d<false>,
     PrepareSpace2d<false>},
    {"SpaceToDepth", "", kAnyType, "movement:space_to_depth", RunDepth<true>, PrepareDepth<true>},
    {"DepthToSpace", "", kAnyType, "movement:space_to_depth", RunDepth<false>, PrepareDepth<false>},
};

}  // namespace

extern constinit const std::span<const Kernel> kSpaceKernels = kSpaceTable;

}  // namespace smelt
