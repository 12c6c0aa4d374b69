// The first step of the singular value decomposition of the real types.
#include "smelt/kernels/linalg/svd.inc"

template class Eigen::internal::UpperBidiagonalization<smelt::SvdMatrix<double>>;
