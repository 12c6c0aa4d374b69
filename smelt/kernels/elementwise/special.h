// Special functions of real numbers, in double precision. Pure; any thread.
#ifndef SMELT_KERNELS_ELEMENTWISE_SPECIAL_H_
#define SMELT_KERNELS_ELEMENTWISE_SPECIAL_H_

namespace smelt {

// log|Gamma(x)|; infinite at 0 and the negative integers.
double LogGamma(double x);
// d/dx log Gamma(x); NaN at the negative integers, -inf or inf at 0.
double Digamma(double x);
// The y with erf(y) = x; infinite at -1 and 1, NaN outside.
double InverseErf(double x);
// The quantile function of the normal distribution; infinite at 0 and 1, NaN outside.
double InverseNormal(double p);
// Regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x); NaN outside x >= 0, a >
// 0.
double IncompleteGamma(double a, double x);
double IncompleteGammaComplement(double a, double x);
// The Hurwitz zeta function: sum of (q + k)^-x over k >= 0.
double HurwitzZeta(double x, double q);
// The n-th derivative of Digamma at x; NaN unless n is a natural number.
double Polygamma(double n, double x);
// Regularised incomplete beta function I_x(a, b); NaN outside a, b > 0, 0 <= x <= 1.
double IncompleteBeta(double a, double b, double x);

}  // namespace smelt

#endif  // SMELT_KERNELS_ELEMENTWISE_SPECIAL_H_
