// Eigenvalues and eigenvectors of square matrices, which are complex.
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/linalg/batch.h"
#include "smelt/kernels/linalg/decompose.h"

namespace smelt {
namespace {

StatusOr<std::unique_ptr<KernelState>> PrepareEig(const Node& node) {
  return ReadIntAttrs(node, {"compute_v"});
}

Status RunEig(OpContext& ctx) {
  ASSIGN_OR_RETURN(MatrixBatch batch, MatrixBatch::Of(ctx, 1));
  const MatrixSize size = batch.input_size(0);
  const int64_t n = size.rows;
  RETURN_IF_ERROR(CheckSquare(size));
  const Dtype in = ctx.input(0).dtype(), out = ctx.output_type(0);
  const bool wide = in == Dtype::kDouble || in == Dtype::kComplex128;
  const Dtype wanted = wide ? Dtype::kComplex128 : Dtype::kComplex64;
  if (out != wanted) {
    return InvalidArgument("Invalid output dtype ", static_cast<int>(out), " vs ",
                           static_cast<int>(wanted));
  }
  const bool vectors = ctx.state<IntAttrs>()[0] != 0;
  RETURN_IF_ERROR(batch.Allocate(0, {n}));
  RETURN_IF_ERROR(vectors ? batch.Allocate(1, {n, n}) : batch.SetUnused(1));
  if (size.empty()) return OkStatus();
  return VisitMatrixType(ctx.input(0).dtype(), [&]<typename T>() {
    using C = ComplexOf<T>;
    return batch.ForEach(25 * CubicCost(n), [&](int64_t b) {
      if (!DecomposeEig(batch.in<T>(0, b), batch.out<C>(0, b),
                        vectors ? batch.out<C>(1, b) : nullptr, n)) {
        return InvalidArgument(
            "Eigen decomposition was not successful. The input might not be valid.");
      }
      return OkStatus();
    });
  });
}

constexpr Kernel kEigTable[] = {
    {"Eig", "T", kMatrixTypes, "linalg:eig", RunEig, PrepareEig},
};

}  // namespace

extern constinit const std::span<const Kernel> kEigKernels = kEigTable;

}  // namespace smelt
