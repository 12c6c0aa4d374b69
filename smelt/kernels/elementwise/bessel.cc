// Bessel functions of orders 0 and 1, in double precision.
#include <math.h>

#include <cmath>
#include <limits>

#include "smelt/kernels/elementwise/special.h"

namespace smelt {
namespace {

constexpr double kBesselNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kBesselInf = std::numeric_limits<double>::infinity();
constexpr double kBesselPi = 3.14159265358979323846;
constexpr double kEulerGamma = 0.57721566490153286061;
// Above, the asymptotic series is exact to rounding; below, the power series has few terms.
constexpr double kBesselFar = 30;

// I_order(x) for 0 <= x <= kBesselFar: a sum of positive terms.
double BesselSeries(int order, double x) {
  const double q = x * x / 4;
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; k < 200 && term > sum * 1e-18; ++k) {
    term *= q / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum;
}

// e^-x I_order(x) for x > kBesselFar.
double BesselAsymptotic(int order, double x) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 40 && std::abs(term) > 1e-18; ++k) {
    const double odd = 2.0 * k - 1;
    term *= -(mu - odd * odd) / (8 * k * x);
    sum += term;
  }
  return sum / std::sqrt(2 * kBesselPi * x);
}

// e^-|x| I_order(x) for order 0 and x >= 0, order 1 odd.
double ScaledBesselI(int order, double x) {
  if (std::isnan(x)) return x;
  const double size = std::abs(x);
  const double v = size <= kBesselFar ? std::exp(-size) * BesselSeries(order, size)
                                      : BesselAsymptotic(order, size);
  return order == 1 && x < 0 ? -v : v;
}

double PlainBesselI(int order, double x) {
  if (!std::isfinite(x)) return kBesselNan;
  const double size = std::abs(x);
  double v;
  if (size <= kBesselFar) {
    v = BesselSeries(order, size);
  } else {
    // Half the exponent twice: the product overflows no earlier than it must.
    const double half = std::exp(size / 2);
    v = half * BesselAsymptotic(order, size) * half;
  }
  return order == 1 && x < 0 ? -v : v;
}

// K_order(x) for 0 < x <= 2, by its series with a logarithm.
double BesselKSeries(int order, double x) {
  const double log_half = std::log(x / 2), q = x * x / 4;
  double term = order == 0 ? 1 : x / 2, sum = 0;
  double psi = order == 0 ? -2 * kEulerGamma : 1 - 2 * kEulerGamma;  // psi(k+1) + psi(k+order+1)
  for (int k = 0; k < 40; ++k) {
    sum += term * (psi / 2 - log_half);
    const double next = k + 1;
    term *= q / (next * (next + order));
    psi += 1 / next + 1 / (next + order);
  }
  return order == 0 ? sum : 1 / x - sum;
}

// e^x K_order(x) for x > 2: the integral of exp(-x (cosh t - 1)) cosh(order t) over t > 0. The
// trapezoidal rule gains digits with the square of the steps' number.
double BesselKIntegral(int order, double x) {
  const double h = std::min(0.1, 0.5 / std::sqrt(x));
  double sum = 0.5;
  for (int i = 1; i < 1000; ++i) {
    const double s = std::sinh(i * h / 2);
    const double v = std::exp(-2 * x * s * s) * (order == 0 ? 1 : 1 + 2 * s * s);
    sum += v;
    if (v < 1e-18 * sum) break;
  }
  return h * sum;
}

double BesselK(int order, double x, bool scaled) {
  if (std::isnan(x)) return x;
  if (x <= 0) return kBesselInf;
  if (std::isinf(x)) return 0;
  if (x <= 2) return BesselKSeries(order, x) * (scaled ? std::exp(x) : 1);
  return BesselKIntegral(order, x) * (scaled ? 1 : std::exp(-x));
}

}  // namespace

double BesselI0(double x) { return PlainBesselI(0, x); }
double BesselI1(double x) { return PlainBesselI(1, x); }
double BesselI0e(double x) { return ScaledBesselI(0, x); }
double BesselI1e(double x) { return ScaledBesselI(1, x); }
double BesselK0(double x) { return BesselK(0, x, false); }
double BesselK1(double x) { return BesselK(1, x, false); }
double BesselK0e(double x) { return BesselK(0, x, true); }
double BesselK1e(double x) { return BesselK(1, x, true); }

double BesselJ0(double x) { return std::isfinite(x) ? j0(x) : kBesselNan; }
double BesselJ1(double x) { return std::isfinite(x) ? j1(x) : kBesselNan; }
double BesselY0(double x) {
  if (x <= 0) return -kBesselInf;
  return std::isfinite(x) ? y0(x) : kBesselNan;
}
double BesselY1(double x) {
  if (x <= 0) return -kBesselInf;
  return std::isfinite(x) ? y1(x) : kBesselNan;
}

}  // namespace smelt
