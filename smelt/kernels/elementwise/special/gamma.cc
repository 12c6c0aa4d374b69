// Derivatives of the logarithm of the gamma function, and Hurwitz' zeta function: Eigen's, as
// TensorFlow's are.
#include <cmath>
#include <limits>
#include <type_traits>
#include <unsupported/Eigen/SpecialFunctions>

#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/rows.h"

namespace smelt {
namespace {

struct GammaDigamma {
  template <typename T>
  static T Of(T x) {
    return Eigen::numext::digamma(x);
  }
};

// From a negative q Eigen's zeta of doubles adds a term for each integer up to a positive base. For
// q below this that would take too long.
constexpr double kGammaFar = -10000;

struct GammaZeta {
  template <typename T>
  static T Of(T x, T q) {
    const T sum = Eigen::numext::zeta(x, q);
    // TensorFlow's Eigen stops when all terms underflow; Debian's goes on and multiplies infinity
    // by 0.
    return std::isnan(sum) && x > 1 && q >= std::numeric_limits<T>::lowest() &&
                   std::pow(LeastBase(q), -x) == 0
               ? T(0)
               : sum;
  }
  static double Of(double x, double q) {
    // Where there is nothing to sum (a pole, or no real value) Eigen returns at once.
    const bool sum = q != std::floor(q) && x > 1 && x == std::floor(x);
    if (!(q < kGammaFar) || !sum) return Of<double>(x, q);
    if (std::isinf(x)) return x;
    // The terms of negative bases are, up to the sign, those that zeta(x, below) has and
    // zeta(x, 1 - q) has not.
    const double above = q - std::floor(q), below = 1 - above;
    const double sign = std::fmod(x, 2) == 0 ? 1 : -1;
    return Of<double>(x, above) + sign * (Of<double>(x, below) - Of<double>(x, 1 - q));
  }

 private:
  // The q + k whose power is the greatest term. Floats take terms to k = 9, doubles to q + k > 9.
  template <typename T>
  static T LeastBase(T q) {
    if (q > 0) return q;
    return std::is_same_v<T, float> && q < -9 ? q + 9 : q - std::floor(q);
  }
};

// As Eigen's, over the zeta function above.
struct GammaPolygamma {
  template <typename T>
  static T Of(T n, T x) {
    if (!(n >= 0) || n != std::floor(n)) return std::numeric_limits<T>::quiet_NaN();
    if (n == 0) return Eigen::numext::digamma(x);
    const T factorial = std::exp(Eigen::numext::lgamma(n + 1));
    return std::pow(T(-1), n + 1) * factorial * GammaZeta::Of(n + 1, x);
  }
};

StatusOr<std::unique_ptr<KernelState>> PrepareDigamma(const Node& node) {
  const Dtype t = node.Type("T");
  return MakeUnaryState(node, t, t, FloatRow<GammaDigamma>(t), nullptr, 1 << 10);
}
template <typename F>
StatusOr<std::unique_ptr<KernelState>> PrepareGammaSum(const Node& node) {
  const Dtype t = node.Type("T");
  return MakeBinaryState(node, t, t, FloatLoops<F>(t), OperandCheck::kNone, 1 << 10);
}

constexpr Kernel kGammaTable[] = {
    {"Digamma", "T", kFloatTypes | kHalfTypes, "special:digamma", RunUnary, PrepareDigamma},
    {"Zeta", "T", kFloatTypes, "special:zeta", RunBinary, PrepareGammaSum<GammaZeta>},
    {"Polygamma", "T", kFloatTypes, "special:polygamma", RunBinary,
     PrepareGammaSum<GammaPolygamma>},
};

}  // namespace

extern constinit const std::span<const Kernel> kGammaKernels = kGammaTable;

}  // namespace smelt
