// Least squares for double.
#include "smelt/kernels/linalg/solve_ls.inc"

namespace smelt {

template bool SolveLsFast(const LsProblem&, double, const double*, const double*, double*);
template void SolveLsOrthogonal(const LsProblem&, const double*, const double*, double*);

}  // namespace smelt
