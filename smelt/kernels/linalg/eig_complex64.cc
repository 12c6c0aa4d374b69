// Eigenvalues and eigenvectors for complex64.
#include "smelt/kernels/linalg/eig.inc"

namespace smelt {

template bool DecomposeEig(const std::complex<float>*, std::complex<float>*, std::complex<float>*,
                           int64_t);

}  // namespace smelt
