// Transpose and ConjugateTranspose.
#include "absl/strings/str_join.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/transfers.h"

namespace smelt {
namespace {

template <typename T>
void TransposeConjugate(Tensor& t) {
  std::complex<T>* values = t.data<std::complex<T>>();
  for (int64_t i = 0; i < t.num_elements(); ++i) values[i] = std::conj(values[i]);
}

struct TransposePlan {
  Shape shape;
  absl::InlinedVector<int, 8> axes;
  bool in_order = true;  // nothing moves
};

StatusOr<TransposePlan> PlanTranspose(const Shape& input, const Tensor& perm) {
  const int rank = input.rank();
  if (perm.rank() != 1) {
    return InvalidArgument("perm must be rank 1, got shape ", perm.shape().ToString());
  }
  if (perm.num_elements() != rank) {
    return InvalidArgument("transpose expects a vector of size ", rank,
                           ". But input(1) is a vector of size ", perm.num_elements());
  }
  // Axes that have one element may be anywhere: the rest in order means that nothing moves.
  int64_t last = -1;
  absl::InlinedVector<bool, 8> seen(rank, false);
  TransposePlan plan;
  plan.axes.resize(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    int64_t d = IndexAt(perm, i);
    if (d < 0) d += rank;
    if (d < 0 || d >= rank) return InvalidArgument(d, " is out of range [0 .. ", rank, ")");
    plan.axes[i] = static_cast<int>(d);
    seen[d] = true;
    plan.shape.Add(input[plan.axes[i]]);
    if (input[plan.axes[i]] != 1) {
      plan.in_order = plan.in_order && d > last;
      last = d;
    }
  }
  for (int i = 0; i < rank; ++i) {
    if (!seen[i]) {
      return InvalidArgument(i, " is missing from {", absl::StrJoin(plan.axes, ","), "}.");
    }
  }
  plan.in_order = plan.in_order || input.num_elements() == 0;
  return plan;
}

CopyDims LoopsOfTranspose(const Shape& input, const TransposePlan& plan) {
  const Dims from = Strides(input);
  const Dims to = Strides(plan.shape);
  CopyDims loops;
  for (int i = 0; i < input.rank(); ++i) {
    loops.push_back({plan.shape[i], to[i], from[plan.axes[i]]});
  }
  return loops;
}

Status TransposeInto(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  ASSIGN_OR_RETURN(const TransposePlan plan, PlanTranspose(input.shape(), ctx.input(1)));
  if (plan.in_order) {
    ctx.set_output(0, ctx.TakeInput(0).WithShape(plan.shape));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, plan.shape));
  CopyStrided(input.dtype(), out->raw(), input.raw(), LoopsOfTranspose(input.shape(), plan));
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> BindTranspose(const IntAttrs&, const BindContext& context) {
  const BoundTensor& input = context.inputs[0];
  const Tensor* perm = context.inputs[1].constant;
  if (perm == nullptr || !IsPod(input.dtype)) return nullptr;
  const auto plan = PlanTranspose(input.shape, *perm);
  if (!plan.ok() || !Fits(context, 2, plan->shape)) return nullptr;
  if (plan->in_order) return BindWhole(0, context.outputs[0]);
  Transfers transfers(input.dtype);
  transfers.Add(0, 0, 0, 0, LoopsOfTranspose(input.shape, *plan));
  return Transfers::Bind(std::move(transfers));
}

Status RunTranspose(OpContext& ctx) { return TransposeInto(ctx); }

Status RunConjugateTranspose(OpContext& ctx) {
  RETURN_IF_ERROR(TransposeInto(ctx));
  const Dtype dtype = ctx.output_type(0);
  if (!IsComplex(dtype)) return OkStatus();
  Tensor& out = ctx.output(0);
  if (!out.Writable()) {
    ASSIGN_OR_RETURN(out, out.Clone(ctx.step().allocator));
  }
  if (dtype == Dtype::kComplex64) {
    TransposeConjugate<float>(out);
  } else {
    TransposeConjugate<double>(out);
  }
  return OkStatus();
}

constexpr Kernel kTransposeTable[] = {
    {"Transpose", "", kAnyType, "movement:transpose", RunTranspose, PrepareBinding<BindTranspose>},
    {"ConjugateTranspose", "", kAnyType, "movement:transpose", RunConjugateTranspose},
};

}  // namespace

extern constinit const std::span<const Kernel> kTransposeKernels = kTransposeTable;

}  // namespace smelt
