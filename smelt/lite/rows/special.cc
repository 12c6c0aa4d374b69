// Functions of statistics, by series and polynomials that are exact to the last digits of a float.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kSpecialTypes = Types(Dtype::kFloat);

// Lanczos' approximation of the gamma function of x + 1, for g = 7.
constexpr double kLanczosBase = 0.99999999999980993;
constexpr std::array<double, 8> kLanczos = {
    676.52036812188510, -1259.1392167224028,  771.32342877765308,    -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
constexpr double kLanczosG = 7;

// What is below a half is reflected: the function of 1 - x.
struct Reflected {
  Endpoint small;  // x < 0.5
  Endpoint z;      // x - 1, or -x
  Endpoint log_t;  // of z + g + 0.5
};

Reflected Reflect(Endpoint x, OperatorChain& c) {
  Reflected r;
  r.small = c.Less(x, 0.5);
  r.z = c.Select(r.small, c.Op("tfl.neg", {x}), c.Sub(x, 1));
  r.log_t = c.Op("tfl.log", {c.Add(r.z, kLanczosG + 0.5)});
  return r;
}

LiteEndpoints LogGamma(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kSpecialTypes));
  OperatorChain c(l);
  const Endpoint x = n.input(0);
  const Reflected r = Reflect(x, c);
  Endpoint sum;
  for (size_t i = 0; i < kLanczos.size(); ++i) {
    const Endpoint term = c.Div(kLanczos[i], c.Add(r.z, static_cast<double>(i + 1)));
    sum = i == 0 ? c.Add(term, kLanczosBase) : c.Add(sum, term);
  }
  // (z + 0.5) log t - t, of which the second does not take digits from the first.
  const Endpoint t = c.Add(r.z, kLanczosG + 0.5);
  const Endpoint power = c.Mul(c.Sub(c.Add(r.z, 0.5), c.Div(t, r.log_t)), r.log_t);
  const Endpoint above =
      c.Add(c.Add(power, 0.5 * std::log(2 * std::numbers::pi)), c.Op("tfl.log", {sum}));
  // log(pi / |sin(pi x)|), by the distance to the next integer; infinite at integers. No infinity
  // is a constant here: exports make those finite.
  const Endpoint size = c.Op("tfl.abs", {x});
  const Endpoint part = c.Sub(size, c.Op("tfl.floor", {size}));
  const Endpoint near = c.Min(part, c.Sub(1, part));
  const Endpoint sine = c.Op("tfl.log", {c.Op("tfl.sin", {c.Mul(near, std::numbers::pi)})});
  const Endpoint below = c.Sub(c.Sub(std::log(std::numbers::pi), sine), above);
  const Endpoint value = c.Select(r.small, below, above);
  return c.Done(c.Select(c.LessEqual(size, std::numeric_limits<float>::max()), value, size));
}

LiteEndpoints Digamma(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kSpecialTypes));
  OperatorChain c(l);
  const Endpoint x = n.input(0);
  const Reflected r = Reflect(x, c);
  Endpoint above, below;
  for (size_t i = 0; i < kLanczos.size(); ++i) {
    const Endpoint at = c.Add(r.z, static_cast<double>(i + 1));
    const Endpoint term = c.Div(kLanczos[i], at), slope = c.Div(term, at);
    below = i == 0 ? c.Add(term, kLanczosBase) : c.Add(below, term);
    above = i == 0 ? slope : c.Add(above, slope);
  }
  const Endpoint t = c.Add(r.z, kLanczosG + 0.5);
  const Endpoint value = c.Sub(c.Sub(r.log_t, c.Div(above, below)), c.Div(kLanczosG, t));
  // pi cot(pi x), by what is behind the next integer.
  const Endpoint part = c.Sub(x, c.Op("tfl.floor", {c.Add(x, 0.5)}));
  const Endpoint angle = c.Mul(part, std::numbers::pi);
  const Endpoint cotangent =
      c.Div(c.Mul(c.Op("tfl.cos", {angle}), std::numbers::pi), c.Op("tfl.sin", {angle}));
  const Endpoint reflected = c.Sub(value, cotangent);
  const Endpoint whole = c.Equal(x, c.Op("tfl.floor", {x}));
  const Endpoint pole = c.And(c.LessEqual(x, 0), whole);
  const Endpoint by_half = c.Select(r.small, reflected, value);
  const double nan = std::numeric_limits<float>::quiet_NaN();
  return c.Done(c.Select(c.And(pole, c.Less(x, 0)), nan, by_half));
}

LiteEndpoints Erfinv(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kSpecialTypes));
  OperatorChain c(l);
  const Endpoint x = n.input(0);
  return c.Done(InverseErf(x, c.Mul(c.Sub(1, x), c.Add(x, 1)), c));
}

// Where the normal distribution has that much below.
LiteEndpoints NormalQuantile(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kSpecialTypes));
  OperatorChain c(l);
  const Endpoint p = n.input(0);
  const Endpoint product = c.Mul(c.Mul(p, 4), c.Sub(1, p));
  return c.Done(c.Mul(InverseErf(c.Sub(c.Mul(p, 2), 1), product, c), std::numbers::sqrt2));
}

constexpr ExportRow kSpecialRows[] = {
    {"Lgamma", LogGamma},
    {"Digamma", Digamma},
    {"Erfinv", Erfinv},
    {"Ndtri", NormalQuantile},
};

}  // namespace

// Giles' polynomials for floats, in the middle and in the tails, and infinite at their ends.
Endpoint InverseErf(Endpoint x, Endpoint product, OperatorChain& c) {
  constexpr std::array<double, 9> kMiddle = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                             -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                             -0.00417768164,  0.246640727,    1.50140941};
  constexpr std::array<double, 9> kTails = {-0.000200214257, 0.000100950558, 0.00134934322,
                                            -0.00367342844,  0.00573950773,  -0.0076224613,
                                            0.00943887047,   1.00167406,     2.83297682};
  const Endpoint w = c.Op("tfl.neg", {c.Op("tfl.log", {product})});
  const auto polynomial = [&](Endpoint v, const std::array<double, 9>& coefficients) {
    Endpoint sum = c.Add(c.Mul(v, coefficients[0]), coefficients[1]);
    for (size_t i = 2; i < coefficients.size(); ++i) sum = c.Add(c.Mul(sum, v), coefficients[i]);
    return sum;
  };
  const Endpoint middle = polynomial(c.Sub(w, 2.5), kMiddle);
  const Endpoint tails = polynomial(c.Sub(c.Op("tfl.sqrt", {c.Max(w, 0)}), 3), kTails);
  const Endpoint factor = c.Select(c.Less(w, 5), middle, tails);
  return c.Mul(c.Select(c.LessEqual(product, 0), w, factor), x);
}

std::span<const ExportRow> SpecialExport() { return kSpecialRows; }

}  // namespace smelt
