// The singular value decomposition for complex128.
#include "smelt/kernels/linalg/svd.inc"

namespace smelt {

template bool DecomposeSvd(const SvdProblem&, const std::complex<double>*, std::complex<double>*,
                           std::complex<double>*, std::complex<double>*);

}  // namespace smelt
