// Eigenvalues and eigenvectors for double.
#include "smelt/kernels/linalg/eig.inc"

namespace smelt {

template bool DecomposeEig(const double*, std::complex<double>*, std::complex<double>*, int64_t);

}  // namespace smelt
