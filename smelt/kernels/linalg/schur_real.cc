// The Schur decomposition of real matrices.
#include <Eigen/Eigenvalues>

#include "smelt/kernels/linalg/decompose.h"
#include "smelt/kernels/linalg/dense.inc"

namespace smelt {

bool DecomposeSchur(const double* in, double* t, double* u, int64_t n) {
  const Eigen::RealSchur<DenseMatrix<double>> schur(DenseIn<double>(in, n, n));
  DenseOut<double>(t, n, n) = schur.matrixT();
  DenseOut<double>(u, n, n) = schur.matrixU();
  return schur.info() == Eigen::Success;
}

}  // namespace smelt
