// Reverse, ReverseV2, ReverseSequence, Roll: the same elements in another order.
#include <algorithm>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/transfers.h"

namespace smelt {
namespace {

// A tensor of `shape` with the marked dimensions backwards, copied from element `first` on.
struct ReversePlan {
  ReversePlan(const Shape& shape, std::span<const bool> backwards) {
    for (int i = 0; i < shape.rank(); ++i) moves = moves || (backwards[i] && shape[i] > 1);
    moves = moves && shape.num_elements() > 0;
    if (!moves) return;
    const Dims strides = Strides(shape);
    for (int i = 0; i < shape.rank(); ++i) {
      loops.push_back({shape[i], strides[i], backwards[i] ? -strides[i] : strides[i]});
      if (backwards[i]) first += (shape[i] - 1) * strides[i];
    }
  }
  bool moves = false;
  int64_t first = 0;
  CopyDims loops;
};

// Output 0 is the input with the marked dimensions backwards.
Status ReverseDims(OpContext& ctx, std::span<const bool> backwards) {
  const Tensor& input = ctx.input(0);
  const ReversePlan plan(input.shape(), backwards);
  if (!plan.moves) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, input.shape()));
  CopyStrided(input.dtype(), out->raw(), At(input.dtype(), input.raw(), plan.first), plan.loops);
  return OkStatus();
}

Status RunReverse(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& dims = ctx.input(1);
  if (input.rank() == 0) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  if (dims.rank() != 1) {
    return InvalidArgument("'dims' must be 1-dimension, not ", dims.rank());
  }
  if (dims.num_elements() != input.rank()) {
    return InvalidArgument("'dims' must have the same number of values as 'input' has ",
                           "dimensions. 'input' has ", input.rank(), "'dims' has ",
                           dims.num_elements(), " values");
  }
  if (input.rank() > 8) {
    return Unimplemented("reverse is not implemented for tensors of rank > 8.");
  }
  return ReverseDims(ctx, dims.flat<bool>());
}

using BackwardDims = absl::InlinedVector<bool, 8>;

// Where nothing can move, axes are not looked at.
StatusOr<BackwardDims> BackwardDimsOf(const Shape& input, const Tensor& axes) {
  const int rank = input.rank();
  if (rank == 0 || input.num_elements() == 0) return BackwardDims(rank, false);
  if (axes.rank() != 1) {
    return InvalidArgument("'dims' must be 1-dimension, not ", axes.rank());
  }
  if (rank > 8) {
    return Unimplemented("reverse is not implemented for tensors of rank > 8.");
  }
  BackwardDims backwards(rank, false);
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    const int64_t given = IndexAt(axes, i);
    const int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank) {
      return InvalidArgument("'axis'[", i, "] = ", given, " is out of valid range [", 0, ", ",
                             rank - 1);
    }
    if (backwards[axis]) {
      return InvalidArgument("axis ", axis, " specified more than once.");
    }
    backwards[axis] = true;
  }
  return backwards;
}

Status RunReverseV2(OpContext& ctx) {
  ASSIGN_OR_RETURN(const BackwardDims backwards,
                   BackwardDimsOf(ctx.input(0).shape(), ctx.input(1)));
  return ReverseDims(ctx, backwards);
}

StatusOr<std::unique_ptr<BoundKernel>> BindReverseV2(const IntAttrs&, const BindContext& context) {
  const BoundTensor& input = context.inputs[0];
  const Tensor* axes = context.inputs[1].constant;
  if (axes == nullptr || !IsPod(input.dtype) || !Fits(context, 2, input.shape)) return nullptr;
  const auto backwards = BackwardDimsOf(input.shape, *axes);
  if (!backwards.ok()) return nullptr;
  const ReversePlan plan(input.shape, *backwards);
  if (!plan.moves) return BindWhole(0, context.outputs[0]);
  Transfers transfers(input.dtype);
  transfers.Add(0, plan.first, 0, 0, plan.loops);
  return Transfers::Bind(std::move(transfers));
}

StatusOr<std::unique_ptr<KernelState>> PrepareReverseSequence(const Node& node) {
  return ReadIntAttrs(node, {"seq_dim", "batch_dim"});
}

Status RunReverseSequence(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& lengths = ctx.input(1);
  const int64_t seq = ctx.state<IntAttrs>()[0], batch = ctx.state<IntAttrs>()[1];
  if (lengths.rank() != 1) {
    return InvalidArgument("seq_lengths must be 1-dim, not ", lengths.rank());
  }
  if (batch < 0) return InvalidArgument("Invalid batch_dim ", batch);
  if (seq < 0) return InvalidArgument("Invalid seq_dim ", seq);
  if (seq == batch) return InvalidArgument("batch_dim == seq_dim == ", seq);
  if (seq >= input.rank()) {
    return InvalidArgument("seq_dim must be < input rank", " ( ", seq, " vs. ", input.rank(), ")");
  }
  if (batch >= input.rank()) {
    return InvalidArgument("batch_dim must be < input rank", " ( ", batch, " vs. ", input.rank(),
                           ")");
  }
  const auto s = static_cast<int>(seq), b = static_cast<int>(batch);
  if (lengths.num_elements() != input.dim(b)) {
    return InvalidArgument("Length of seq_lengths != input.dims(", batch, "), (",
                           lengths.num_elements(), " vs. ", input.dim(b), ")");
  }
  for (int64_t i = 0; i < lengths.num_elements(); ++i) {
    if (IndexAt(lengths, i) < 0) {
      return InvalidArgument("seq_lens(", i, ") < 0");
    }
    if (IndexAt(lengths, i) > input.dim(s)) {
      return InvalidArgument("seq_lens(", i, ") > input.dims(", seq, ")");
    }
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, input.shape()));
  if (input.num_elements() == 0) return OkStatus();
  const Dims strides = Strides(input.shape());
  const Dtype dtype = input.dtype();
  for (int64_t i = 0; i < lengths.num_elements(); ++i) {
    const int64_t n = IndexAt(lengths, i);
    CopyDims loops;
    for (int d = 0; d < input.rank(); ++d) {
      if (d != b) loops.push_back({input.dim(d), strides[d], strides[d]});
    }
    CopyDim& turn = loops[s < b ? s : s - 1];
    const int64_t base = i * strides[b];
    turn = {n, strides[s], -strides[s]};
    CopyStrided(dtype, At(dtype, out->raw(), base),
                At(dtype, input.raw(), base + (n - 1) * strides[s]), loops);
    turn = {input.dim(s) - n, strides[s], strides[s]};
    CopyStrided(dtype, At(dtype, out->raw(), base + n * strides[s]),
                At(dtype, input.raw(), base + n * strides[s]), loops);
  }
  return OkStatus();
}

Status RunRoll(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& shift = ctx.input(1);
  const Tensor& axis = ctx.input(2);
  const int rank = input.rank();
  if (rank < 1) return InvalidArgument("input must be 1-D or higher");
  if (shift.rank() > 1) {
    return InvalidArgument("shift must be a scalar or a 1-D vector. Found: ",
                           shift.shape().ToString());
  }
  if (axis.rank() > 1) {
    return InvalidArgument("axis must be a scalar or a 1-D vector. Found: ",
                           axis.shape().ToString());
  }
  if (!(shift.shape() == axis.shape())) {
    return InvalidArgument("shift and axis must have the same size");
  }
  // By dimension: how far elements move towards higher indices, in [0, size).
  Dims by(rank, 0);
  for (int64_t i = 0; i < shift.num_elements(); ++i) {
    const int64_t given = IndexAt(axis, i);
    const int64_t a = given < 0 ? given + rank : given;
    if (a < 0 || a >= rank) return InvalidArgument("axis ", a, " is out of range");
    const int64_t size = std::max<int64_t>(input.dim(static_cast<int>(a)), 1);
    by[a] = (by[a] + IndexAt(shift, i) % size + size) % size;
  }
  absl::InlinedVector<int, 6> moving;
  for (int d = 0; d < rank; ++d) {
    if (by[d] != 0) moving.push_back(d);
  }
  if (moving.empty() || input.num_elements() == 0) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  if (moving.size() > 20) return Unimplemented("Roll along ", moving.size(), " dimensions");
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, input.shape()));
  const Dims strides = Strides(input.shape());
  const Dtype dtype = input.dtype();
  // Each moving dimension falls into two pieces; every combination is one block.
  for (uint32_t c = 0; c < (1u << moving.size()); ++c) {
    CopyDims loops;
    for (int d = 0; d < rank; ++d) loops.push_back({input.dim(d), strides[d], strides[d]});
    int64_t to = 0, from = 0;
    for (size_t m = 0; m < moving.size(); ++m) {
      const int d = moving[m];
      const int64_t wrapped = by[d], kept = input.dim(d) - wrapped;
      if ((c >> m) & 1) {
        loops[d].size = wrapped;
        from += kept * strides[d];
      } else {
        loops[d].size = kept;
        to += wrapped * strides[d];
      }
    }
    CopyStrided(dtype, At(dtype, out->raw(), to), At(dtype, input.raw(), from), loops);
  }
  return OkStatus();
}

constexpr Kernel kReverseTable[] = {
    {"ReverseV2", "", kAnyType, "movement:reverse", RunReverseV2, PrepareBinding<BindReverseV2>},
    {"Reverse", "", kAnyType, "movement:reverse", RunReverse},
    {"ReverseSequence", "", kAnyType, "movement:reverse", RunReverseSequence,
     PrepareReverseSequence},
    {"Roll", "", kAnyType, "movement:roll", RunRoll},
};

}  // namespace

extern constinit const std::span<const Kernel> kReverseKernels = kReverseTable;

}  // namespace smelt
