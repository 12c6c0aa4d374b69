// The singular value decomposition for double.
#include "smelt/kernels/linalg/svd.inc"

namespace smelt {

template bool DecomposeSvd(const SvdProblem&, const double*, double*, double*, double*);

}  // namespace smelt
