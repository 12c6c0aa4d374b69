// Eigenvalues and eigenvectors of self-adjoint matrices for the real types.
#include "smelt/kernels/linalg/self_adjoint.inc"

namespace smelt {

template bool DecomposeSelfAdjoint(const float*, float*, float*, int64_t);
template bool DecomposeSelfAdjoint(const double*, double*, double*, int64_t);

}  // namespace smelt
