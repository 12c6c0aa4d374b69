// What the singular value decomposition of the real types falls back to for small matrices.
#include "smelt/kernels/linalg/svd.inc"

template class Eigen::JacobiSVD<smelt::SvdMatrix<float>>;
template class Eigen::JacobiSVD<smelt::SvdMatrix<double>>;
