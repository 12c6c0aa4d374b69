#include "smelt/kernels/elementwise/special.h"

#include <math.h>

#include <cmath>
#include <limits>

namespace smelt {
namespace {

constexpr double kSpecialNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSpecialInf = std::numeric_limits<double>::infinity();
constexpr double kSpecialPi = 3.14159265358979323846;
constexpr double kSpecialEpsilon = 1.1e-16;

// x^a e^-x / Gamma(a): the factor before the series and the fraction.
double GammaFactor(double a, double x) { return std::exp(a * std::log(x) - x - LogGamma(a)); }

// P(a, x) by its power series; for x <= a + 1.
double GammaSeries(double a, double x) {
  double r = a, term = 1, sum = 1;
  for (int i = 0; i < 10000; ++i) {
    r += 1;
    term *= x / r;
    sum += term;
    if (term <= sum * kSpecialEpsilon) break;
  }
  return sum * GammaFactor(a, x) / a;
}

// Q(a, x) by its continued fraction (Lentz's method); for x > a + 1.
double GammaFraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / kTiny;
  double d = 1 / b;
  double h = d;
  for (int i = 1; i < 10000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double step = d * c;
    h *= step;
    if (std::abs(step - 1) < 2 * kSpecialEpsilon) break;
  }
  return h * GammaFactor(a, x);
}

double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  if (std::abs(d) < kTiny) d = kTiny;
  d = 1 / d;
  double h = d;
  for (int m = 1; m < 10000; ++m) {
    const double m2 = 2.0 * m;
    double t = m * (b - m) * x / ((a - 1 + m2) * (a + m2));
    d = 1 + t * d;
    if (std::abs(d) < kTiny) d = kTiny;
    c = 1 + t / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    h *= d * c;
    t = -(a + m) * (a + b + m) * x / ((a + m2) * (a + 1 + m2));
    d = 1 + t * d;
    if (std::abs(d) < kTiny) d = kTiny;
    c = 1 + t / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double step = d * c;
    h *= step;
    if (std::abs(step - 1) < 2 * kSpecialEpsilon) break;
  }
  return h;
}

// A first guess at the normal quantile's magnitude (Abramowitz and Stegun 26.2.23), for p <= 1/2.
double QuantileGuess(double p) {
  const double t = std::sqrt(-2 * std::log(p));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

// The y >= 0 with erfc(y / sqrt 2) / 2 = p, for 0 < p <= 1/2.
double UpperQuantile(double p) {
  double y = QuantileGuess(p);
  for (int i = 0; i < 4; ++i) {
    const double q = 0.5 * std::erfc(y / std::sqrt(2.0));
    const double density = std::exp(-0.5 * y * y) / std::sqrt(2 * kSpecialPi);
    if (density == 0) break;
    // Halley's step.
    const double u = (q - p) / density;
    y += u / (1 - 0.5 * u * y);
  }
  return y;
}

}  // namespace

double LogGamma(double x) {
  int sign;
  // The plain lgamma writes a global variable.
  return lgamma_r(x, &sign);
}

double Digamma(double x) {
  if (std::isnan(x) || x == -kSpecialInf) return kSpecialNan;
  if (x == kSpecialInf) return x;
  if (x <= 0) {
    if (x == std::floor(x)) return kSpecialNan;
    // psi(1 - x) - psi(x) = pi cot(pi x); the fraction of x keeps tan exact.
    const double f = x - std::floor(x);
    const double cotangent = f == 0.5 ? 0 : kSpecialPi / std::tan(kSpecialPi * f);
    return Digamma(1 - x) - cotangent;
  }
  double shift = 0;
  while (x < 10) {
    shift += 1 / x;
    x += 1;
  }
  const double z = 1 / (x * x);
  // Bernoulli numbers B_2k / 2k.
  double series = 8.33333333333333333333e-2;
  series = 2.10927960927960927961e-2 - z * series;
  series = 7.57575757575757575758e-3 - z * series;
  series = 4.16666666666666666667e-3 - z * series;
  series = 3.96825396825396825397e-3 - z * series;
  series = 8.33333333333333333333e-3 - z * series;
  series = 8.33333333333333333333e-2 - z * series;
  return std::log(x) - 0.5 / x - z * series - shift;
}

double InverseErf(double x) {
  if (!(std::abs(x) <= 1)) return kSpecialNan;
  if (std::abs(x) == 1) return std::copysign(kSpecialInf, x);
  if (x == 0) return x;
  // erfc of the answer is 1 - |x|; near 0 Newton on erf keeps the relative precision.
  double y = UpperQuantile(0.5 * (1 - std::abs(x))) / std::sqrt(2.0);
  if (std::abs(x) < 0.5) {
    for (int i = 0; i < 3; ++i) {
      y -= (std::erf(y) - std::abs(x)) * std::exp(y * y) * 0.5 * std::sqrt(kSpecialPi);
    }
  }
  return std::copysign(y, x);
}

double InverseNormal(double p) {
  if (!(p >= 0 && p <= 1)) return kSpecialNan;
  if (p == 0) return -kSpecialInf;
  if (p == 1) return kSpecialInf;
  if (p > 0.25 && p < 0.75) return std::sqrt(2.0) * InverseErf(2 * p - 1);
  return p < 0.5 ? -UpperQuantile(p) : UpperQuantile(1 - p);
}

double IncompleteGamma(double a, double x) {
  if (x == 0) return 0;
  if (!(a > 0) || !(x >= 0)) return kSpecialNan;
  if (std::isinf(a)) return 0;
  if (std::isinf(x)) return 1;
  return x <= a + 1 ? GammaSeries(a, x) : 1 - GammaFraction(a, x);
}

double IncompleteGammaComplement(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return kSpecialNan;
  if (x == 0) return 1;
  if (std::isinf(x)) return 0;
  if (std::isinf(a)) return 1;
  return x <= a + 1 ? 1 - GammaSeries(a, x) : GammaFraction(a, x);
}

namespace {

// Terms from n = 0 on, to where an integral and Bernoulli corrections stand for the rest. In
// doubles until q + n > 9; in floats nine, whatever q is: TensorFlow's answers for negative q are
// those of this series.
template <typename T>
T ZetaSeries(T x, T q) {
  constexpr T kEnough = sizeof(T) == 8 ? T(kSpecialEpsilon) : T(5.9604644775390625e-8);
  T term = std::pow(q, -x), sum = term, at = q;
  for (int i = 0; i < 9 || (sizeof(T) == 8 && at <= 9); ++i) {
    at += 1;
    term = std::pow(at, -x);
    sum += term;
    if (std::abs(term / sum) < kEnough) return sum;
  }
  if (sum == 0) return 0;
  sum += term * at / (x - 1) - T(0.5) * term;
  // (2k)! / B_2k.
  constexpr T kFactors[] = {T(12.0),
                            T(-720.0),
                            T(30240.0),
                            T(-1209600.0),
                            T(47900160.0),
                            T(-1.8924375803183791606e9),
                            T(7.47242496e10),
                            T(-2.950130727918164224e12),
                            T(1.1646782814350067249e14),
                            T(-4.5979787224074726105e15),
                            T(1.8152105401943546773e17),
                            T(-7.1661652561756670113e18)};
  T factor = 1, k = 0;
  for (const T f : kFactors) {
    factor *= x + k;
    term /= at;
    const T t = factor * term / f;
    sum += t;
    if (std::abs(t / sum) < kEnough) break;
    k += 1;
    factor *= x + k;
    term /= at;
    k += 1;
  }
  return sum;
}

template <typename T>
T ZetaOf(T x, T q) {
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  constexpr T kInf = std::numeric_limits<T>::infinity();
  if (x == 1) return kInf;
  if (std::isnan(q) || !(x > 1)) return kNan;
  if (q == kInf) return 0;
  if (q <= 0) {
    if (q == std::floor(q)) return std::isinf(x) || std::fmod(x, T(2)) == 0 ? kInf : kNan;
    if (x != std::floor(x)) return kNan;
    // The sum up to q + n > 0 is that of two series of positive numbers: no need to take a term for
    // each of them.
    if (std::isinf(x)) return kInf;
    constexpr T kFar = 10000;
    if (sizeof(T) == 8 && q < -kFar) {
      const T above = q - std::floor(q), below = 1 - above;
      const T sign = std::fmod(x, T(2)) == 0 ? 1 : -1;
      return ZetaSeries(x, above) + sign * (ZetaSeries(x, below) - ZetaSeries(x, 1 - q));
    }
  }
  return ZetaSeries(x, q);
}

template <typename T>
T PolygammaOf(T n, T x) {
  if (!(n >= 0) || n != std::floor(n)) return std::numeric_limits<T>::quiet_NaN();
  if (n == 0) return static_cast<T>(Digamma(x));
  const T sign = std::fmod(n + 1, T(2)) == 0 ? 1 : -1;
  return sign * static_cast<T>(std::exp(LogGamma(n + 1))) * ZetaOf(n + 1, x);
}

}  // namespace

double HurwitzZeta(double x, double q) { return ZetaOf(x, q); }
float HurwitzZeta(float x, float q) { return ZetaOf(x, q); }
double Polygamma(double n, double x) { return PolygammaOf(n, x); }
float Polygamma(float n, float x) { return PolygammaOf(n, x); }

double IncompleteBeta(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1)) return kSpecialNan;
  if (x == 0 || x == 1) return x;
  const double factor =
      std::exp(LogGamma(a + b) - LogGamma(a) - LogGamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? factor * BetaFraction(a, b, x) / a
                                   : 1 - factor * BetaFraction(b, a, 1 - x) / b;
}

}  // namespace smelt
