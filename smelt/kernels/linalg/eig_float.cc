// Eigenvalues and eigenvectors for float.
#include "smelt/kernels/linalg/eig.inc"

namespace smelt {

template bool DecomposeEig(const float*, std::complex<float>*, std::complex<float>*, int64_t);

}  // namespace smelt
