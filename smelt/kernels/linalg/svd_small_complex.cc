// What the singular value decomposition of the complex types falls back to for small matrices.
#include "smelt/kernels/linalg/svd.inc"

template class Eigen::JacobiSVD<smelt::SvdMatrix<std::complex<float>>>;
template class Eigen::JacobiSVD<smelt::SvdMatrix<std::complex<double>>>;
