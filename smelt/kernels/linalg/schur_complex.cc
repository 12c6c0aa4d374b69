// The Schur decomposition of complex matrices.
#include <Eigen/Eigenvalues>

#include "smelt/kernels/linalg/decompose.h"
#include "smelt/kernels/linalg/dense.inc"

namespace smelt {

bool DecomposeSchur(const std::complex<double>* in, std::complex<double>* t,
                    std::complex<double>* u, int64_t n) {
  using Value = std::complex<double>;
  const Eigen::ComplexSchur<DenseMatrix<Value>> schur(DenseIn<Value>(in, n, n));
  DenseOut<Value>(t, n, n) = schur.matrixT().triangularView<Eigen::Upper>();
  DenseOut<Value>(u, n, n) = schur.matrixU();
  return schur.info() == Eigen::Success;
}

}  // namespace smelt
