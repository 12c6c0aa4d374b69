// Rows of the special functions of one number: Bessel functions and integrals.
#include <limits>

#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/rows.h"
#include "smelt/kernels/elementwise/special.h"

namespace smelt {
namespace {

template <double (*fn)(double)>
struct OfDouble {
  template <typename T>
  static T Of(T x) {
    return static_cast<T>(fn(static_cast<double>(x)));
  }
};

// TensorFlow's single precision has no value at 0.
struct BesselY1Of {
  static float Of(float x) {
    return x == 0 ? std::numeric_limits<float>::quiet_NaN()
                  : static_cast<float>(BesselY1(static_cast<double>(x)));
  }
  static double Of(double x) { return BesselY1(x); }
};

struct SpecialUnaryOp {
  absl::string_view op;
  UnaryFn f32, f64;
};
template <typename F>
constexpr SpecialUnaryOp SpecialUnaryLoops(absl::string_view op) {
  return {op, UnaryRow<F, float, float>, UnaryRow<F, double, double>};
}
template <double (*fn)(double)>
constexpr SpecialUnaryOp SpecialUnaryRow(absl::string_view op) {
  return SpecialUnaryLoops<OfDouble<fn>>(op);
}
constexpr SpecialUnaryOp kSpecialUnaryOps[] = {
    SpecialUnaryRow<BesselI0>("BesselI0"),
    SpecialUnaryRow<BesselI0e>("BesselI0e"),
    SpecialUnaryRow<BesselI1>("BesselI1"),
    SpecialUnaryRow<BesselI1e>("BesselI1e"),
    SpecialUnaryRow<BesselJ0>("BesselJ0"),
    SpecialUnaryRow<BesselJ1>("BesselJ1"),
    SpecialUnaryRow<BesselK0>("BesselK0"),
    SpecialUnaryRow<BesselK0e>("BesselK0e"),
    SpecialUnaryRow<BesselK1>("BesselK1"),
    SpecialUnaryRow<BesselK1e>("BesselK1e"),
    SpecialUnaryRow<BesselY0>("BesselY0"),
    SpecialUnaryLoops<BesselY1Of>("BesselY1"),
    SpecialUnaryRow<Dawson>("Dawsn"),
    SpecialUnaryRow<ExponentialIntegral>("Expint"),
    SpecialUnaryRow<FresnelCosine>("FresnelCos"),
    SpecialUnaryRow<FresnelSine>("FresnelSin"),
    SpecialUnaryRow<Spence>("Spence"),
};

StatusOr<std::unique_ptr<KernelState>> PrepareSpecialUnary(const Node& node) {
  const Dtype t = node.Type("T");
  for (const SpecialUnaryOp& row : kSpecialUnaryOps) {
    if (row.op != node.op()) continue;
    return MakeUnaryState(node, t, t, t == Dtype::kDouble ? row.f64 : row.f32, nullptr, 1 << 9);
  }
  return Internal("no loops for ", node.op());
}

constexpr DtypeSet kBesselTypes = kFloatTypes | Types(Dtype::kHalf);

#define SMELT_BESSEL_ROW(Op) \
  { Op, "T", kBesselTypes, "reference:bessel", RunUnary, PrepareSpecialUnary }
#define SMELT_INTEGRAL_ROW(Op) \
  { Op, "T", kFloatTypes, "reference:integral", RunUnary, PrepareSpecialUnary }
constexpr Kernel kSpecialUnaryTable[] = {
    SMELT_BESSEL_ROW("BesselI0"),     SMELT_BESSEL_ROW("BesselI0e"),
    SMELT_BESSEL_ROW("BesselI1"),     SMELT_BESSEL_ROW("BesselI1e"),
    SMELT_BESSEL_ROW("BesselJ0"),     SMELT_BESSEL_ROW("BesselJ1"),
    SMELT_BESSEL_ROW("BesselK0"),     SMELT_BESSEL_ROW("BesselK0e"),
    SMELT_BESSEL_ROW("BesselK1"),     SMELT_BESSEL_ROW("BesselK1e"),
    SMELT_BESSEL_ROW("BesselY0"),     SMELT_BESSEL_ROW("BesselY1"),
    SMELT_INTEGRAL_ROW("Dawsn"),      SMELT_INTEGRAL_ROW("Expint"),
    SMELT_INTEGRAL_ROW("FresnelCos"), SMELT_INTEGRAL_ROW("FresnelSin"),
    SMELT_INTEGRAL_ROW("Spence"),
};
#undef SMELT_BESSEL_ROW
#undef SMELT_INTEGRAL_ROW

}  // namespace

extern constinit const std::span<const Kernel> kSpecialUnaryKernels = kSpecialUnaryTable;

}  // namespace smelt
