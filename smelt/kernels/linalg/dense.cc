#include "smelt/kernels/linalg/dense.inc"

namespace smelt {

DenseMatrix<double> DenseProduct(const DenseMatrix<double>& a, const DenseMatrix<double>& b) {
  return a * b;
}

DenseMatrix<std::complex<double>> DenseProduct(const DenseMatrix<std::complex<double>>& a,
                                               const DenseMatrix<std::complex<double>>& b) {
  return a * b;
}

}  // namespace smelt
