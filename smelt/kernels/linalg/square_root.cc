// Square roots of matrices.
#include <limits>
#include <unsupported/Eigen/MatrixFunctions>

#include "smelt/kernels/linalg/batch.h"

namespace smelt {
namespace {

template <typename T>
using RootMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename T>
void SquareRoot(const T* in, T* out, int64_t n) {
  const RootMatrix<T> matrix = Eigen::Map<const RootMatrix<T>>(in, n, n);
  Eigen::Map<RootMatrix<T>> result(out, n, n);
  if (matrix.allFinite()) {
    result = matrix.sqrt();
  } else {
    result.fill(AllNan<T>());
  }
}

Status RunSquareRoot(OpContext& ctx) {
  ASSIGN_OR_RETURN(MatrixBatch batch, MatrixBatch::Of(ctx, 1));
  const MatrixSize size = batch.input_size(0);
  RETURN_IF_ERROR(CheckSquare(size));
  RETURN_IF_ERROR(batch.Allocate(0, {size.rows, size.rows}));
  if (size.empty()) return OkStatus();
  return batch.VisitWide([&]<typename T>() {
    return batch.ForEach(20 * CubicCost(size.rows), [&](int64_t b) {
      SquareRoot(batch.in<T>(0, b), batch.out<T>(0, b), size.rows);
      return OkStatus();
    });
  });
}

constexpr Kernel kSquareRootTable[] = {
    {"MatrixSquareRoot", "T", kMatrixTypes, "linalg:square_root", RunSquareRoot},
};

}  // namespace

extern constinit const std::span<const Kernel> kSquareRootKernels = kSquareRootTable;

}  // namespace smelt
