// The singular value decomposition for complex64.
#include "smelt/kernels/linalg/svd.inc"

namespace smelt {

template bool DecomposeSvd(const SvdProblem&, const std::complex<float>*, std::complex<float>*,
                           std::complex<float>*, std::complex<float>*);

}  // namespace smelt
