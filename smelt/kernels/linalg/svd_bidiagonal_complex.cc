// The first step of the singular value decomposition of the complex types.
#include "smelt/kernels/linalg/svd.inc"

template class Eigen::internal::UpperBidiagonalization<smelt::SvdMatrix<std::complex<float>>>;
template class Eigen::internal::UpperBidiagonalization<smelt::SvdMatrix<std::complex<double>>>;
