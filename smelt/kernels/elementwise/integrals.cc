// Dawson's integral, the exponential integral, Fresnel's integrals and Spence's function, computed
// in double. Eigen has none of them; TensorFlow has code of its own.
#include <cmath>
#include <complex>
#include <limits>

#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/rows.h"

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
  // The wave has period 4 in x^2, which is reduced before the product with pi rounds it.
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
  } else if (size < 36974) {  // from there on TensorFlow returns the limit
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

// exp(-x^2) times the integral of exp(t^2) from 0 to x.
double Dawson(double x) {
  if (std::isnan(x)) return x;
  const double size = std::abs(x);
  if (size < 0.3) return DawsonSeries(x);
  if (size >= 1e9) return 0.5 / size;  // TensorFlow forgets the sign
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

// Ei(x), the principal value of the integral of e^t / t up to x; NaN for x < 0, -inf at 0.
double ExponentialIntegral(double x) {
  if (x == 0) return -kIntegralInf;
  if (!(x > 0) || std::isinf(x)) return kIntegralNan;
  return std::expint(x);
}

// Integrals of cos(pi t^2 / 2) and sin(pi t^2 / 2) from 0 to x.
double FresnelCosine(double x) { return Fresnel(x).real(); }
double FresnelSine(double x) { return Fresnel(x).imag(); }

// The integral of log t / (1 - t) from 1 to x, for x >= 0.
double Spence(double x) {
  if (!(x >= 0) || std::isinf(x)) return kIntegralNan;
  constexpr double kSixth = kIntegralPi * kIntegralPi / 6;
  if (x == 0) return kSixth;
  const double log = std::log(x);
  if (x < 0.5) return kSixth - log * std::log1p(-x) - SpenceNearOne(1 - x);
  if (x <= 2) return SpenceNearOne(x);
  return -0.5 * log * log - Spence(1 / x);
}

template <double (*fn)(double)>
struct IntegralOf {
  template <typename T>
  static T Of(T x) {
    // TensorFlow divides 1 by a large number in the number's own type, which flushes the result.
    if (fn == Spence && x > 1 / std::numeric_limits<T>::min()) return static_cast<T>(kIntegralNan);
    return static_cast<T>(fn(static_cast<double>(x)));
  }
};

template <double (*fn)(double)>
StatusOr<std::unique_ptr<KernelState>> PrepareIntegral(const Node& node) {
  const Dtype t = node.Type("T");
  return MakeUnaryState(node, t, t, FloatRow<IntegralOf<fn>>(t), nullptr, 1 << 9);
}

constexpr Kernel kIntegralTable[] = {
    {"Dawsn", "T", kFloatTypes, "reference:integral", RunUnary, PrepareIntegral<Dawson>},
    {"Expint", "T", kFloatTypes, "reference:integral", RunUnary,
     PrepareIntegral<ExponentialIntegral>},
    {"FresnelCos", "T", kFloatTypes, "reference:integral", RunUnary,
     PrepareIntegral<FresnelCosine>},
    {"FresnelSin", "T", kFloatTypes, "reference:integral", RunUnary, PrepareIntegral<FresnelSine>},
    {"Spence", "T", kFloatTypes, "reference:integral", RunUnary, PrepareIntegral<Spence>},
};

}  // namespace

extern constinit const std::span<const Kernel> kIntegralKernels = kIntegralTable;

}  // namespace smelt
