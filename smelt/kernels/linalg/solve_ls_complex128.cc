// Least squares for complex128.
#include "smelt/kernels/linalg/solve_ls.inc"

namespace smelt {

template bool SolveLsFast(const LsProblem&, double, const std::complex<double>*,
                          const std::complex<double>*, std::complex<double>*);
template void SolveLsOrthogonal(const LsProblem&, const std::complex<double>*,
                                const std::complex<double>*, std::complex<double>*);

}  // namespace smelt
