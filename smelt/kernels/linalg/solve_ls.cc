// Least squares: by the normal equations, or by an orthogonal decomposition that stands rank
// deficiency.
#include <Eigen/Cholesky>
#include <Eigen/QR>

#include "smelt/kernels/linalg/batch.h"
#include "smelt/kernels/movement/arguments.h"

namespace smelt {
namespace {

template <typename T>
using LsMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using LsIn = Eigen::Map<const LsMatrix<T>>;
template <typename T>
using LsOut = Eigen::Map<LsMatrix<T>>;

// (A^H A + l2 I) x = A^H b for tall matrices, x = A^H (A A^H + l2 I)^-1 b for wide ones.
template <typename T>
Status SolveNormal(const LsIn<T>& a, const LsIn<T>& b, double l2, LsOut<T>& x) {
  const bool tall = a.rows() >= a.cols();
  LsMatrix<T> gram = tall ? LsMatrix<T>(a.adjoint() * a) : LsMatrix<T>(a * a.adjoint());
  using Real = typename Eigen::NumTraits<T>::Real;
  gram.diagonal().array() += T(static_cast<Real>(l2));
  const Eigen::LLT<LsMatrix<T>> llt(gram);
  if (llt.info() != Eigen::Success) {
    return InvalidArgument(
        "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a",
        tall ? " larger" : "n", " l2_regularizer > 0.");
  }
  if (tall) {
    x = llt.solve(a.adjoint() * b);
  } else {
    x = a.adjoint() * llt.solve(b);
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> PrepareSolveLs(const Node& node) {
  return ReadIntAttrs(node, {"fast"});
}

Status RunSolveLs(OpContext& ctx) {
  const Tensor& l2_tensor = ctx.input(2);
  if (l2_tensor.rank() != 0) {
    return InvalidArgument("l2_regularizer must be scalar, got shape ",
                           l2_tensor.shape().ToString());
  }
  const double l2 = l2_tensor.scalar<double>();
  if (l2 < 0) return InvalidArgument("l2_regularizer must be >= 0.");
  ASSIGN_OR_RETURN(MatrixBatch batch, MatrixBatch::Of(ctx, 2));
  const MatrixSize size = batch.input_size(0), rhs = batch.input_size(1);
  if (size.rows != rhs.rows) return InvalidArgument("Input matrix and rhs are incompatible.");
  RETURN_IF_ERROR(batch.Allocate(0, {size.cols, rhs.cols}));
  const bool fast = ctx.state<IntAttrs>()[0] != 0;
  return batch.VisitWide([&]<typename T>() {
    return batch.ForEach(4 * CubicCost(std::max(size.rows, size.cols)), [&](int64_t i) -> Status {
      const LsIn<T> a(batch.in<T>(0, i), size.rows, size.cols);
      const LsIn<T> b(batch.in<T>(1, i), rhs.rows, rhs.cols);
      LsOut<T> x(batch.out<T>(0, i), size.cols, rhs.cols);
      if (size.empty() || rhs.empty()) {
        x.setZero();
        return OkStatus();
      }
      if (fast) return SolveNormal<T>(a, b, l2, x);
      x = Eigen::CompleteOrthogonalDecomposition<LsMatrix<T>>(a).solve(b);
      return OkStatus();
    });
  });
}

constexpr Kernel kSolveLsTable[] = {
    {"MatrixSolveLs", "T", kMatrixTypes, "linalg:solve_ls", RunSolveLs, PrepareSolveLs},
    {"BatchMatrixSolveLs", "T", kFloatTypes, "linalg:solve_ls", RunSolveLs, PrepareSolveLs},
};

}  // namespace

extern constinit const std::span<const Kernel> kSolveLsKernels = kSolveLsTable;

}  // namespace smelt
