// Exponentials and square roots of matrices.
#include <limits>
#include <unsupported/Eigen/MatrixFunctions>

#include "smelt/kernels/linalg/batch.h"

namespace smelt {
namespace {

template <typename T>
using FunctionMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Checked first, as the scaling of a matrix that is not finite has no end.
template <typename T>
void Exponentiate(const T* in, T* out, int64_t n) {
  const Eigen::Map<const FunctionMatrix<T>> matrix(in, n, n);
  Eigen::Map<FunctionMatrix<T>> result(out, n, n);
  if (matrix.allFinite()) {
    const FunctionMatrix<T> copy = matrix;
    result = copy.exp();
  } else {
    result.fill(T(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::quiet_NaN()));
  }
}

template <typename T>
void SquareRoot(const T* in, T* out, int64_t n) {
  const FunctionMatrix<T> matrix = Eigen::Map<const FunctionMatrix<T>>(in, n, n);
  Eigen::Map<FunctionMatrix<T>> result(out, n, n);
  if (matrix.allFinite()) {
    result = matrix.sqrt();
  } else {
    result.fill(T(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::quiet_NaN()));
  }
}

template <bool kExponential>
Status RunMatrixFunction(OpContext& ctx) {
  ASSIGN_OR_RETURN(MatrixBatch batch, MatrixBatch::Of(ctx, 1));
  const MatrixSize size = batch.input_size(0);
  const int64_t n = size.rows;
  RETURN_IF_ERROR(CheckSquare(size));
  RETURN_IF_ERROR(batch.Allocate(0, {n, n}));
  if (size.empty()) return OkStatus();
  return VisitMatrixType(ctx.input(0).dtype(), [&]<typename T>() {
    return batch.ForEach(20 * CubicCost(n), [&](int64_t b) {
      if constexpr (kExponential) {
        Exponentiate(batch.in<T>(0, b), batch.out<T>(0, b), n);
      } else {
        SquareRoot(batch.in<T>(0, b), batch.out<T>(0, b), n);
      }
      return OkStatus();
    });
  });
}

constexpr Kernel kMatrixFunctionTable[] = {
    {"MatrixExponential", "T", kMatrixTypes, "linalg:exponential", RunMatrixFunction<true>},
    {"MatrixSquareRoot", "T", kMatrixTypes, "linalg:square_root", RunMatrixFunction<false>},
};

}  // namespace

extern constinit const std::span<const Kernel> kMatrixFunctionKernels = kMatrixFunctionTable;

}  // namespace smelt
