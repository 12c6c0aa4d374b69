// Eigenvalues and eigenvectors of self-adjoint matrices for the complex types.
#include "smelt/kernels/linalg/self_adjoint.inc"

namespace smelt {

template bool DecomposeSelfAdjoint(const std::complex<float>*, std::complex<float>*,
                                   std::complex<float>*, int64_t);
template bool DecomposeSelfAdjoint(const std::complex<double>*, std::complex<double>*,
                                   std::complex<double>*, int64_t);

}  // namespace smelt
