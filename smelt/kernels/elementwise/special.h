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
float HurwitzZeta(float x, float q);
// The n-th derivative of Digamma at x; NaN unless n is a natural number.
double Polygamma(double n, double x);
float Polygamma(float n, float x);
// Regularised incomplete beta function I_x(a, b); NaN outside a, b > 0, 0 <= x <= 1.
double IncompleteBeta(double a, double b, double x);

// d/da P(a, x); NaN where P is.
double IncompleteGammaGradient(double a, double x);
// How a sample x of the gamma distribution of shape a moves with a, its quantile kept.
double GammaSampleGradient(double a, double x);

// Bessel functions of the first (J) and second kind (Y), and modified ones (I, K), which an e
// scales by exp(-|x|) and exp(x). Y is -inf and K inf for x <= 0.
double BesselI0(double x);
double BesselI0e(double x);
double BesselI1(double x);
double BesselI1e(double x);
double BesselJ0(double x);
double BesselJ1(double x);
double BesselK0(double x);
double BesselK0e(double x);
double BesselK1(double x);
double BesselK1e(double x);
double BesselY0(double x);
double BesselY1(double x);

// exp(-x^2) times the integral of exp(t^2) from 0 to x.
double Dawson(double x);
// Ei(x), the principal value of the integral of e^t / t up to x; NaN for x < 0, -inf at 0.
double ExponentialIntegral(double x);
// Integrals of cos(pi t^2 / 2) and sin(pi t^2 / 2) from 0 to x.
double FresnelCosine(double x);
double FresnelSine(double x);
// The integral of log t / (1 - t) from 1 to x, for x >= 0.
double Spence(double x);

}  // namespace smelt

#endif  // SMELT_KERNELS_ELEMENTWISE_SPECIAL_H_
