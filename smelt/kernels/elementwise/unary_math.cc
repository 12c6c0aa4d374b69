// Functions of one number: roots, exponentials, trigonometry, rounding.
#include <math.h>

#include <cmath>
#include <complex>
#include <limits>

#include "smelt/graph/op_facts.h"
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/rows.h"

namespace smelt {
namespace {

template <typename T>
constexpr bool kMathComplex = false;
template <typename T>
constexpr bool kMathComplex<std::complex<T>> = true;

#define SMELT_MATH(Name, expression) \
  struct Name {                      \
    template <typename T>            \
    static T Of(T x) {               \
      return expression;             \
    }                                \
  };
SMELT_MATH(MathSqrt, std::sqrt(x))
SMELT_MATH(MathRsqrt, T(1) / std::sqrt(x))
SMELT_MATH(MathReciprocal, T(1) / x)
SMELT_MATH(MathExp, std::exp(x))
SMELT_MATH(MathLog, std::log(x))
SMELT_MATH(MathSin, std::sin(x))
SMELT_MATH(MathCos, std::cos(x))
SMELT_MATH(MathTan, std::tan(x))
SMELT_MATH(MathAsin, std::asin(x))
SMELT_MATH(MathAcos, std::acos(x))
SMELT_MATH(MathAtan, std::atan(x))
SMELT_MATH(MathSinh, std::sinh(x))
SMELT_MATH(MathCosh, std::cosh(x))
SMELT_MATH(MathTanh, std::tanh(x))
SMELT_MATH(MathAsinh, std::asinh(x))
SMELT_MATH(MathAcosh, std::acosh(x))
SMELT_MATH(MathAtanh, std::atanh(x))
// TensorFlow's erf of an infinite double is NaN.
SMELT_MATH(MathErf,
           sizeof(T) == 8 && std::isinf(x) ? std::numeric_limits<T>::quiet_NaN() : std::erf(x))
SMELT_MATH(MathErfc, std::erfc(x))
SMELT_MATH(MathFloor, std::floor(x))
SMELT_MATH(MathCeil, std::ceil(x))
SMELT_MATH(MathRint, std::nearbyint(x))
#undef SMELT_MATH

// std::lgamma writes a global variable (signgam), in which threads would race.
struct MathLgamma {
  static float Of(float x) {
    int sign;
    return lgammaf_r(x, &sign);
  }
  static double Of(double x) {
    int sign;
    return lgamma_r(x, &sign);
  }
};
struct MathExpm1 {
  template <typename T>
  static T Of(T x) {
    if constexpr (kMathComplex<T>) {
      // exp(a + ib) - 1, without cancellation near 0.
      const auto a = x.real(), b = x.imag();
      const auto e = std::expm1(a);
      const auto s = std::sin(b / 2);
      return T(e * std::cos(b) - 2 * s * s, std::exp(a) * std::sin(b));
    } else {
      return std::expm1(x);
    }
  }
};
struct MathLog1p {
  template <typename T>
  static T Of(T x) {
    if constexpr (kMathComplex<T>) {
      const auto a = x.real(), b = x.imag();
      using R = typename T::value_type;
      // log|1+x| = log1p(2a + a^2 + b^2) / 2.
      const R near = R(0.5) * std::log1p(a * (a + 2) + b * b);
      const bool small = std::abs(a) < R(0.5) && std::abs(b) < R(0.5);
      return T(small ? near : std::log(std::abs(T(1 + a, b))), std::atan2(b, 1 + a));
    } else {
      return std::log1p(x);
    }
  }
};
struct MathSigmoid {
  template <typename T>
  static T Of(T x) {
    if constexpr (kMathComplex<T>) {
      return T(1) / (T(1) + std::exp(-x));
    } else {
      const T e = std::exp(-std::abs(x));
      return (x < T(0) ? e : T(1)) / (T(1) + e);
    }
  }
};
struct MathSquare {
  template <typename T>
  static T Of(T x) {
    if constexpr (std::is_integral_v<T>) {
      using W = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
      return static_cast<T>(static_cast<W>(x) * static_cast<W>(x));
    } else {
      return x * x;
    }
  }
};
struct MathNeg {
  template <typename T>
  static T Of(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::make_unsigned_t<T>(0) - static_cast<std::make_unsigned_t<T>>(x));
    } else {
      return -x;
    }
  }
};
struct MathAbs {
  template <typename T>
  static T Of(T x) {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? MathNeg::Of(x) : x;
    } else {
      return std::abs(x);
    }
  }
};
struct MathSign {
  template <typename T>
  static T Of(T x) {
    if constexpr (kMathComplex<T>) {
      const auto a = std::abs(x);
      return a == 0 ? T(0) : x / a;
    } else {
      return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x);
    }
  }
};
// TensorFlow's formula converts 0.5 to the integer type, where it is 0: every result is 0.
struct MathRoundInteger {
  template <typename T>
  static T Of(T) {
    return T(0);
  }
};

// nullptr for a type that the function lacks: MakeUnaryState then refuses the node.
template <typename F, IntegerUnary op>
UnaryFn MathNumbers(Dtype t) {
  return IsInteger(t) ? IntegerRowOr<F>(op, t) : InexactRow<F>(t);
}
template <typename F, IntegerUnary op>
UnaryFn MathReals(Dtype t) {
  return IsInteger(t) ? IntegerRowOr<F>(op, t) : FloatRow<F>(t);
}
UnaryFn MathRounds(Dtype t) {
  return IsInteger(t) ? IntRow<MathRoundInteger>(t) : FloatRow<MathRint>(t);
}

struct MathOp {
  absl::string_view op;
  UnaryFn (*fn)(Dtype);
  UnaryF32 f32;   // kCount: none
  int64_t grain;  // elements that one thread should have at least
};
constexpr int64_t kMathCheap = 1 << 15;
constexpr int64_t kMathDear = 1 << 13;
constexpr MathOp kMathOps[] = {
    {"Abs", MathReals<MathAbs, IntegerUnary::kAbs>, UnaryF32::kAbs, kMathCheap},
    {"Neg", MathNumbers<MathNeg, IntegerUnary::kNeg>, UnaryF32::kNeg, kMathCheap},
    {"Sign", MathNumbers<MathSign, IntegerUnary::kSign>, UnaryF32::kSign, kMathCheap},
    {"Square", MathNumbers<MathSquare, IntegerUnary::kSquare>, UnaryF32::kSquare, kMathCheap},
    {"Sqrt", InexactRow<MathSqrt>, UnaryF32::kSqrt, kMathCheap},
    {"Rsqrt", InexactRow<MathRsqrt>, UnaryF32::kRsqrt, kMathCheap},
    {"Reciprocal", InexactRow<MathReciprocal>, UnaryF32::kReciprocal, kMathCheap},
    {"Exp", InexactRow<MathExp>, UnaryF32::kExp, kMathDear},
    {"Expm1", InexactRow<MathExpm1>, UnaryF32::kExpm1, kMathDear},
    {"Log", InexactRow<MathLog>, UnaryF32::kLog, kMathDear},
    {"Log1p", InexactRow<MathLog1p>, UnaryF32::kLog1p, kMathDear},
    {"Sin", InexactRow<MathSin>, UnaryF32::kSin, kMathDear},
    {"Cos", InexactRow<MathCos>, UnaryF32::kCos, kMathDear},
    {"Tan", InexactRow<MathTan>, UnaryF32::kCount, kMathDear / 4},
    {"Asin", InexactRow<MathAsin>, UnaryF32::kAsin, kMathDear},
    {"Acos", InexactRow<MathAcos>, UnaryF32::kAcos, kMathDear},
    {"Atan", InexactRow<MathAtan>, UnaryF32::kAtan, kMathDear},
    {"Sinh", InexactRow<MathSinh>, UnaryF32::kCount, kMathDear / 4},
    {"Cosh", InexactRow<MathCosh>, UnaryF32::kCount, kMathDear / 4},
    {"Tanh", InexactRow<MathTanh>, UnaryF32::kTanh, kMathDear},
    {"Asinh", InexactRow<MathAsinh>, UnaryF32::kAsinh, kMathDear},
    {"Acosh", InexactRow<MathAcosh>, UnaryF32::kAcosh, kMathDear},
    {"Atanh", InexactRow<MathAtanh>, UnaryF32::kAtanh, kMathDear},
    {"Sigmoid", InexactRow<MathSigmoid>, UnaryF32::kSigmoid, kMathDear},
    {"Erf", FloatRow<MathErf>, UnaryF32::kErf, kMathDear},
    {"Erfc", FloatRow<MathErfc>, UnaryF32::kErfc, kMathDear},
    {"Lgamma", FloatRow<MathLgamma>, UnaryF32::kCount, kMathDear / 8},
    {"Floor", FloatRow<MathFloor>, UnaryF32::kFloor, kMathCheap},
    {"Ceil", FloatRow<MathCeil>, UnaryF32::kCeil, kMathCheap},
    {"Round", MathRounds, UnaryF32::kRint, kMathCheap},
    {"Rint", FloatRow<MathRint>, UnaryF32::kRint, kMathCheap},
};

StatusOr<std::unique_ptr<KernelState>> PrepareMath(const Node& node) {
  const Dtype t = node.Type("T");
  const absl::string_view op = FirstVersion(node.op());
  for (const MathOp& row : kMathOps) {
    if (row.op != op) continue;
    const IsaUnaryFn f32 =
        row.f32 == UnaryF32::kCount ? nullptr : Isa().unary[static_cast<int>(row.f32)];
    return MakeUnaryState(node, t, t, row.fn(t), f32, row.grain);
  }
  return Internal("no loops for ", node.op());
}

constexpr DtypeSet kMathFloatTypes = kFloatTypes | kHalfTypes;
constexpr DtypeSet kMathInexactTypes = kMathFloatTypes | kComplexTypes;
constexpr DtypeSet kMathSigned = kMathFloatTypes | kSignedIntTypes;

constexpr Kernel kMathTable[] = {
    {"Abs", "T", kMathSigned, "isa:abs", RunUnary, PrepareMath},
    {"Neg", "T", kMathSigned | kComplexTypes, "isa:neg", RunUnary, PrepareMath},
    {"Sign", "T", kMathSigned | kComplexTypes, "isa:sign", RunUnary, PrepareMath},
    {"Square", "T", kNumberTypes, "isa:square", RunUnary, PrepareMath},
    {"Sqrt", "T", kMathInexactTypes, "isa:sqrt", RunUnary, PrepareMath},
    {"Rsqrt", "T", kMathInexactTypes, "isa:rsqrt", RunUnary, PrepareMath},
    {"Reciprocal", "T", kMathInexactTypes, "isa:reciprocal", RunUnary, PrepareMath},
    {"Exp", "T", kMathInexactTypes, "isa:exp", RunUnary, PrepareMath},
    {"Expm1", "T", kMathInexactTypes, "isa:expm1", RunUnary, PrepareMath},
    {"Log", "T", kMathInexactTypes, "isa:log", RunUnary, PrepareMath},
    {"Log1p", "T", kMathInexactTypes, "isa:log1p", RunUnary, PrepareMath},
    {"Sin", "T", kMathInexactTypes, "isa:sin", RunUnary, PrepareMath},
    {"Cos", "T", kMathInexactTypes, "isa:cos", RunUnary, PrepareMath},
    {"Tan", "T", kMathInexactTypes, "reference:tan", RunUnary, PrepareMath},
    {"Asin", "T", kMathInexactTypes, "isa:asin", RunUnary, PrepareMath},
    {"Acos", "T", kMathInexactTypes, "isa:acos", RunUnary, PrepareMath},
    {"Atan", "T", kMathInexactTypes, "isa:atan", RunUnary, PrepareMath},
    {"Sinh", "T", kMathInexactTypes, "reference:sinh", RunUnary, PrepareMath},
    {"Cosh", "T", kMathInexactTypes, "reference:cosh", RunUnary, PrepareMath},
    {"Tanh", "T", kMathInexactTypes, "isa:tanh", RunUnary, PrepareMath},
    {"Asinh", "T", kMathInexactTypes, "isa:asinh", RunUnary, PrepareMath},
    {"Acosh", "T", kMathInexactTypes, "isa:acosh", RunUnary, PrepareMath},
    {"Atanh", "T", kMathInexactTypes, "isa:atanh", RunUnary, PrepareMath},
    {"Sigmoid", "T", kMathInexactTypes, "isa:sigmoid", RunUnary, PrepareMath},
    {"Erf", "T", kMathFloatTypes, "isa:erf", RunUnary, PrepareMath},
    {"Erfc", "T", kMathFloatTypes, "isa:erfc", RunUnary, PrepareMath},
    {"Lgamma", "T", kMathFloatTypes, "reference:lgamma", RunUnary, PrepareMath},
    {"Floor", "T", kMathFloatTypes, "isa:floor", RunUnary, PrepareMath},
    {"Ceil", "T", kMathFloatTypes, "isa:ceil", RunUnary, PrepareMath},
    {"Round", "T", kMathFloatTypes | kIndexTypes, "isa:round", RunUnary, PrepareMath},
    {"Rint", "T", kFloatTypes, "isa:round", RunUnary, PrepareMath},
};

}  // namespace

extern constinit const std::span<const Kernel> kMathKernels = kMathTable;

}  // namespace smelt
