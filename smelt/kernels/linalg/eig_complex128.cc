// Eigenvalues and eigenvectors for complex128.
#include "smelt/kernels/linalg/eig.inc"

namespace smelt {

template bool DecomposeEig(const std::complex<double>*, std::complex<double>*,
                           std::complex<double>*, int64_t);

}  // namespace smelt
