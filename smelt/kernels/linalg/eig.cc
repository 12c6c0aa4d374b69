// Eigenvalues and eigenvectors of square matrices, which are complex.
#include <Eigen/Eigenvalues>

#include "smelt/kernels/linalg/batch.h"
#include "smelt/kernels/movement/arguments.h"

namespace smelt {
namespace {

template <typename T>
using EigMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

StatusOr<std::unique_ptr<KernelState>> PrepareEig(const Node& node) {
  const Dtype in = node.Type("T", Dtype::kInvalid), out = node.Type("Tout", Dtype::kInvalid);
  const Dtype wanted =
      in == Dtype::kDouble || in == Dtype::kComplex128 ? Dtype::kComplex128 : Dtype::kComplex64;
  if (out != wanted) {
    return InvalidArgument("Invalid output dtype ", static_cast<int>(out), " vs ",
                           static_cast<int>(wanted));
  }
  return ReadIntAttrs(node, {"compute_v"});
}

template <typename T>
struct EigOf {
  using Complex = std::complex<T>;
  using Solver = Eigen::EigenSolver<EigMatrix<T>>;
};
template <typename T>
struct EigOf<std::complex<T>> {
  using Complex = std::complex<T>;
  using Solver = Eigen::ComplexEigenSolver<EigMatrix<std::complex<T>>>;
};

template <typename T>
Status DecomposeEig(const MatrixBatch& batch, int64_t n, bool vectors) {
  using C = typename EigOf<T>::Complex;
  return batch.ForEach(25 * CubicCost(n), [&](int64_t b) {
    const Eigen::Map<const EigMatrix<T>> in(batch.in<T>(0, b), n, n);
    const typename EigOf<T>::Solver solver(in, vectors);
    if (solver.info() != Eigen::Success) {
      return InvalidArgument(
          "Eigen decomposition was not successful. The input might not be valid.");
    }
    Eigen::Map<EigMatrix<C>>(batch.out<C>(0, b), n, 1) = solver.eigenvalues();
    if (vectors) Eigen::Map<EigMatrix<C>>(batch.out<C>(1, b), n, n) = solver.eigenvectors();
    return OkStatus();
  });
}

Status RunEig(OpContext& ctx) {
  ASSIGN_OR_RETURN(MatrixBatch batch, MatrixBatch::Of(ctx, 1));
  const MatrixSize size = batch.input_size(0);
  const int64_t n = size.rows;
  RETURN_IF_ERROR(CheckSquare(size));
  const bool vectors = ctx.state<IntAttrs>()[0] != 0;
  RETURN_IF_ERROR(batch.Allocate(0, {n}));
  if (vectors) {
    RETURN_IF_ERROR(batch.Allocate(1, {n, n}));
  } else {
    ASSIGN_OR_RETURN(Tensor unused, Tensor::Zeros(ctx.output_type(1), Shape()));
    ctx.set_output(1, std::move(unused));
  }
  if (size.empty()) return OkStatus();
  return VisitMatrixType(ctx.input(0).dtype(),
                         [&]<typename T>() { return DecomposeEig<T>(batch, n, vectors); });
}

constexpr Kernel kEigTable[] = {
    {"Eig", "T", kMatrixTypes, "linalg:eig", RunEig, PrepareEig},
};

}  // namespace

extern constinit const std::span<const Kernel> kEigKernels = kEigTable;

}  // namespace smelt
