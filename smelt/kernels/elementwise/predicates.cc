// Questions about elements, parts of complex numbers, and constants of an input's shape.
#include <cmath>
#include <complex>
#include <cstring>

#include "smelt/base/parallel.h"
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/rows.h"

namespace smelt {
namespace {

struct PredNan {
  template <typename T>
  static bool Of(T x) {
    return std::isnan(x);
  }
};
struct PredInf {
  template <typename T>
  static bool Of(T x) {
    return std::isinf(x);
  }
};
struct PredFinite {
  template <typename T>
  static bool Of(T x) {
    return std::isfinite(x);
  }
};
struct PredReal {
  template <typename T>
  static T Of(std::complex<T> x) {
    return x.real();
  }
};
struct PredImag {
  template <typename T>
  static T Of(std::complex<T> x) {
    return x.imag();
  }
};
struct PredAngle {
  template <typename T>
  static T Of(std::complex<T> x) {
    return std::arg(x);
  }
};
struct PredModulus {
  template <typename T>
  static T Of(std::complex<T> x) {
    return std::abs(x);
  }
};
struct PredConj {
  template <typename T>
  static std::complex<T> Of(std::complex<T> x) {
    return std::conj(x);
  }
};

template <typename F>
UnaryFn PredFloats(Dtype t) {
  return t == Dtype::kDouble ? UnaryRow<F, double, bool> : UnaryRow<F, float, bool>;
}

StatusOr<std::unique_ptr<KernelState>> PreparePredicate(const Node& node) {
  if (node.Is("LogicalNot")) {
    return MakeUnaryState(node, Dtype::kBool, Dtype::kBool,
                          IntegerRow(IntegerUnary::kNot, IsaType::kU8));
  }
  const Dtype t = node.Type("T");
  return MakeUnaryState(node, t, Dtype::kBool,
                        node.Is("IsNan")   ? PredFloats<PredNan>(t)
                        : node.Is("IsInf") ? PredFloats<PredInf>(t)
                                           : PredFloats<PredFinite>(t));
}

template <typename F>
UnaryFn PredPart(Dtype t) {
  return t == Dtype::kComplex64 ? UnaryRow<F, std::complex<float>, float>
                                : UnaryRow<F, std::complex<double>, double>;
}

UnaryFn ModulusOf(Dtype t) {
  if (t == Dtype::kComplex128) return UnaryRow<PredModulus, std::complex<double>, double>;
  return [](const void* x, void* y, int64_t n, float /*alpha*/) { Isa().modulus(x, y, n); };
}

StatusOr<std::unique_ptr<KernelState>> PreparePart(const Node& node) {
  const Dtype t = node.Type("T");
  const Dtype result = t == Dtype::kComplex64 ? Dtype::kFloat : Dtype::kDouble;
  if (node.Type("Tout") != result) {
    return InvalidArgument("Signature mismatch, have: ", DtypeName(t), "->",
                           DtypeName(node.Type("Tout")), " expected: ", DtypeName(t), "->",
                           DtypeName(result));
  }
  return MakeUnaryState(node, t, result,
                        node.Is("Real")    ? PredPart<PredReal>(t)
                        : node.Is("Imag")  ? PredPart<PredImag>(t)
                        : node.Is("Angle") ? PredPart<PredAngle>(t)
                                           : ModulusOf(t),
                        nullptr, 1 << 13);
}

StatusOr<std::unique_ptr<KernelState>> PrepareConj(const Node& node) {
  const Dtype t = node.Type("T");
  return MakeUnaryState(node, t, t,
                        t == Dtype::kComplex64
                            ? UnaryRow<PredConj, std::complex<float>, std::complex<float>>
                            : UnaryRow<PredConj, std::complex<double>, std::complex<double>>);
}

Status RunZerosLike(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  // Allocate makes strings empty.
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  if (IsPod(out->dtype()) && out->bytes() > 0) std::memset(out->raw(), 0, out->bytes());
  return OkStatus();
}

template <typename T>
void FillOne(Tensor* out) {
  for (T& v : out->flat<T>()) v = T(1);
}
Status RunOnesLike(OpContext& ctx) {
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, ctx.input(0).shape()));
  switch (out->dtype()) {
    case Dtype::kFloat:
      FillOne<float>(out);
      break;
    case Dtype::kDouble:
      FillOne<double>(out);
      break;
    case Dtype::kHalf:
      FillOne<Half>(out);
      break;
    case Dtype::kBfloat16:
      FillOne<Bfloat16>(out);
      break;
    case Dtype::kInt8:
    case Dtype::kUint8:
    case Dtype::kBool:
      if (out->bytes() > 0) std::memset(out->raw(), 1, out->bytes());
      break;
    case Dtype::kInt16:
      FillOne<int16_t>(out);
      break;
    case Dtype::kUint16:
      FillOne<uint16_t>(out);
      break;
    case Dtype::kInt32:
      FillOne<int32_t>(out);
      break;
    case Dtype::kUint32:
      FillOne<uint32_t>(out);
      break;
    case Dtype::kInt64:
      FillOne<int64_t>(out);
      break;
    case Dtype::kUint64:
      FillOne<uint64_t>(out);
      break;
    case Dtype::kComplex64:
      FillOne<std::complex<float>>(out);
      break;
    case Dtype::kComplex128:
      FillOne<std::complex<double>>(out);
      break;
    default:
      return Unimplemented("OnesLike of ", DtypeName(out->dtype()));
  }
  return OkStatus();
}

constexpr DtypeSet kPredFloatTypes = kFloatTypes | kHalfTypes;
constexpr DtypeSet kPredOnes = kNumberTypes | Types(Dtype::kBool);
constexpr DtypeSet kPredZeros = kPredOnes | Types(Dtype::kString);

constexpr Kernel kPredicateTable[] = {
    {"IsNan", "T", kPredFloatTypes, "reference:is_nan", RunUnary, PreparePredicate},
    {"IsInf", "T", kPredFloatTypes, "reference:is_inf", RunUnary, PreparePredicate},
    {"IsFinite", "T", kPredFloatTypes, "reference:is_finite", RunUnary, PreparePredicate},
    {"LogicalNot", "", kAnyType, "isa:logical_not", RunUnary, PreparePredicate},
    {"Real", "T", kComplexTypes, "reference:real", RunUnary, PreparePart},
    {"Imag", "T", kComplexTypes, "reference:imag", RunUnary, PreparePart},
    {"Angle", "T", kComplexTypes, "reference:angle", RunUnary, PreparePart},
    {"ComplexAbs", "T", kComplexTypes, "reference:complex_abs", RunUnary, PreparePart},
    {"Conj", "T", kComplexTypes, "reference:conj", RunUnary, PrepareConj},
    {"ZerosLike", "T", kPredZeros, "reference:zeros_like", RunZerosLike},
    {"OnesLike", "T", kPredOnes, "reference:ones_like", RunOnesLike},
};

}  // namespace

extern constinit const std::span<const Kernel> kPredicateKernels = kPredicateTable;

}  // namespace smelt
