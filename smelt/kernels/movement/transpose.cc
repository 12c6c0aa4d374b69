// Transpose and ConjugateTranspose.
#include "absl/strings/str_join.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/copy.h"

namespace smelt {
namespace {

template <typename T>
void TransposeConjugate(Tensor& t) {
  std::complex<T>* values = t.data<std::complex<T>>();
  for (int64_t i = 0; i < t.num_elements(); ++i) values[i] = std::conj(values[i]);
}

Status TransposeInto(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& perm = ctx.input(1);
  const int rank = input.rank();
  if (perm.rank() != 1) {
    return InvalidArgument("perm must be rank 1, got shape ", perm.shape().ToString());
  }
  if (perm.num_elements() != rank) {
    return InvalidArgument("transpose expects a vector of size ", rank,
                           ". But input(1) is a vector of size ", perm.num_elements());
  }
  // Axes that have one element may be anywhere: the rest in order means that nothing moves.
  bool in_order = true;
  int64_t last = -1;
  absl::InlinedVector<bool, 8> seen(rank, false);
  Shape shape;
  absl::InlinedVector<int, 8> axes(rank);
  for (int i = 0; i < rank; ++i) {
    int64_t d = IndexAt(perm, i);
    if (d < 0) d += rank;
    if (d < 0 || d >= rank) return InvalidArgument(d, " is out of range [0 .. ", rank, ")");
    axes[i] = static_cast<int>(d);
    seen[d] = true;
    shape.Add(input.dim(axes[i]));
    if (input.dim(axes[i]) != 1) {
      in_order = in_order && d > last;
      last = d;
    }
  }
  for (int i = 0; i < rank; ++i) {
    if (!seen[i]) {
      return InvalidArgument(i, " is missing from {", absl::StrJoin(axes, ","), "}.");
    }
  }
  if (in_order || input.num_elements() == 0) {
    ctx.set_output(0, ctx.TakeInput(0).WithShape(shape));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  const Dims from = Strides(input.shape());
  const Dims to = Strides(shape);
  CopyDims loops;
  for (int i = 0; i < rank; ++i) loops.push_back({shape[i], to[i], from[axes[i]]});
  CopyStrided(input.dtype(), out->raw(), input.raw(), loops);
  return OkStatus();
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
    {"Transpose", "", kAnyType, "movement:transpose", RunTranspose},
    {"ConjugateTranspose", "", kAnyType, "movement:transpose", RunConjugateTranspose},
};

}  // namespace

extern constinit const std::span<const Kernel> kTransposeKernels = kTransposeTable;

}  // namespace smelt
