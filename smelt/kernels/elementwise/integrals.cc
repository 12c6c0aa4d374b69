// Integrals without a closed form, in double precision: of exponentials, of sines of squares, of
// logarithms, and the incomplete gamma function's derivative.
#include <cmath>
#include <complex>
#include <limits>

#include "smelt/kernels/elementwise/special.h"

namespace smelt {
namespace {

constexpr double kIntegralNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kIntegralInf = std::numeric_limits<double>::infinity();
constexpr double kIntegralPi = 3.14159265358979323846;

// Sum of terms x^(2n+1) (-2)^n / (2n+1)!!, for |x| < 0.3.
double DawsonSeries(double x) {
  double term = x, sum = x;
  for (int n = 1; n < 20; ++n) {
    term *= -2 * x * x / (2 * n + 1);
    sum += term;
  }
  return sum;
}

// C(x) + i S(x) for 0 <= x < 1.5.
std::complex<double> FresnelSeries(double x) {
  // The series of the integral of exp(i pi t^2 / 2).
  const std::complex<double> q(0, kIntegralPi / 2 * x * x);
  std::complex<double> term = x, sum = x;
  for (int n = 1; n < 60; ++n) {
    term *= q / static_cast<double>(n);
    sum += term / (2.0 * n + 1);
  }
  return sum;
}

// The same for larger x: (1 + i)/2 (1 - exp(i pi x^2 / 2) w), with the continued fraction of the
// complementary error function by Lentz's method.
std::complex<double> FresnelFraction(double x) {
  using C = std::complex<double>;
  const double pix2 = kIntegralPi * x * x;
  C b(1, -pix2), c = 1e300, d = 1.0 / b, h = d;
  int n = -1;
  for (int k = 2; k < 500; ++k) {
    n += 2;
    const double a = -n * (n + 1.0);
    b += 4;
    d = 1.0 / (a * d + b);
    c = b + a / c;
    const C step = c * d;
    h *= step;
    if (std::abs(step.real() - 1) + std::abs(step.imag()) < 1e-15) break;
  }
  h *= C(x, -x);
  // The phase of x^2 / 2 periods, reduced before it meets pi.
  const double turns = std::fmod(x * x, 4);
  const C wave(std::cos(kIntegralPi / 2 * turns), std::sin(kIntegralPi / 2 * turns));
  return C(0.5, 0.5) * (1.0 - wave * h);
}

std::complex<double> Fresnel(double x) {
  if (std::isnan(x)) return {x, x};
  const double size = std::abs(x);
  std::complex<double> v;
  if (size < 1.5) {
    v = FresnelSeries(size);
  } else if (size < 36974) {  // beyond, TensorFlow is content with the limit
    v = FresnelFraction(size);
  } else {
    v = {0.5, 0.5};
  }
  return x < 0 ? -v : v;
}

// The dilogarithm Li2(1 - x) for x in [1/2, 2], in powers of log x (coefficients B_n / (n + 1)!).
double SpenceNearOne(double x) {
  constexpr double kTerms[] = {1.0 / 36,
                               -1.0 / 3600,
                               1.0 / 211680,
                               -1.0 / 10886400,
                               1.0 / 526901760,
                               -4.0647616451442255e-11,
                               8.9216910204564526e-13,
                               -1.9939295860721076e-14,
                               4.5189800296199182e-16};
  const double u = -std::log(x);
  double power = u, sum = u - u * u / 4;
  for (const double term : kTerms) {
    power *= u * u;
    sum += term * power;
  }
  return sum;
}

constexpr int kGammaSteps = 100000;  // about ten times the root of what a may be

// (d/da P(a, x)) / p(x), p the density of the gamma distribution; for x <= a + 1. The terms of P's
// series, x^(a+n) e^-x / Gamma(a+n+1), each differentiated: all of one sign but the first.
double GammaGradientSeries(double a, double x) {
  const double log_x = std::log(x);
  double term = x / a, psi = Digamma(a + 1), sum = 0;
  for (int n = 0; n < kGammaSteps; ++n) {
    const double part = term * (log_x - psi);
    sum += part;
    if (n > 2 && std::abs(part) <= std::abs(sum) * 1e-17) break;
    psi += 1 / (a + n + 1);
    term *= x / (a + n + 1);
  }
  return sum;
}

// -(d/da P(a, x)) / p(x) for x > a + 1, from Q(a, x) / p(x) as a continued fraction in a, of which
// a step in the imaginary direction gives the derivative without loss.
double GammaGradientFraction(double a, double x) {
  using C = std::complex<double>;
  constexpr double kTiny = 1e-300, kStep = 1e-100;
  const C at(a, kStep);
  C b = x + 1 - at, c = 1 / kTiny, d = 1.0 / b, h = d;
  for (int i = 1; i < kGammaSteps; ++i) {
    const C an = -static_cast<double>(i) * (static_cast<double>(i) - at);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1.0 / d;
    const C step = d * c;
    h *= step;
    if (std::abs(step.real() - 1) < 1e-16 && std::abs(step.imag()) < 1e-16 * kStep) break;
  }
  h *= x;
  return h.real() * (std::log(x) - Digamma(a)) + h.imag() / kStep;
}

}  // namespace

double Dawson(double x) {
  if (std::isnan(x)) return x;
  const double size = std::abs(x);
  if (size < 0.3) return DawsonSeries(x);
  if (size > 50) return 0.5 / x * (1 + 0.5 / (x * x) * (1 + 1.5 / (x * x)));
  // Rybicki's sum over odd n of exp(-(x - n h)^2) / n.
  constexpr double kStep = 0.25;
  const int nearest = 2 * static_cast<int>(size / (2 * kStep) + 0.5);
  const double off = size - nearest * kStep;
  double sum = 0;
  for (int n = -29; n <= 29; n += 2) {
    const double distance = off - n * kStep;
    sum += std::exp(-distance * distance) / (nearest + n);
  }
  return std::copysign(sum / std::sqrt(kIntegralPi), x);
}

double ExponentialIntegral(double x) {
  if (x == 0) return -kIntegralInf;
  if (!(x > 0) || std::isinf(x)) return kIntegralNan;
  return std::expint(x);
}

double FresnelCosine(double x) { return Fresnel(x).real(); }
double FresnelSine(double x) { return Fresnel(x).imag(); }

double Spence(double x) {
  if (!(x >= 0) || std::isinf(x)) return kIntegralNan;
  constexpr double kSixth = kIntegralPi * kIntegralPi / 6;
  if (x == 0) return kSixth;
  const double log = std::log(x);
  if (x < 0.5) return kSixth - log * std::log1p(-x) - SpenceNearOne(1 - x);
  if (x <= 2) return SpenceNearOne(x);
  return -0.5 * log * log - Spence(1 / x);
}

double GammaSampleGradient(double a, double x) {
  if (x == 0) return 0;
  if (!(a > 0) || !(x >= 0)) return kIntegralNan;
  if (std::isinf(x) || std::isinf(a)) return 0;
  if (x <= a + 1) return -GammaGradientSeries(a, x);
  return GammaGradientFraction(a, x);
}

double IncompleteGammaGradient(double a, double x) {
  if (x == 0) return 0;
  if (!(a > 0) || !(x >= 0)) return kIntegralNan;
  if (std::isinf(x) || std::isinf(a)) return 0;
  const double density = std::exp((a - 1) * std::log(x) - x - LogGamma(a));
  return density == 0 ? 0 : -density * GammaSampleGradient(a, x);
}

}  // namespace smelt
