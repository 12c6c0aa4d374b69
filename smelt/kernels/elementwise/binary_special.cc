// Powers, angles and special functions of two numbers (of three: Betainc).
#include <cmath>
#include <complex>

#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/rows.h"
#include "smelt/kernels/elementwise/special.h"

namespace smelt {
namespace {

struct SpecialPow {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      // Squaring, wrapping around; negative exponents were refused before.
      uint64_t r = 1, base = static_cast<uint64_t>(a);
      for (auto e = static_cast<uint64_t>(b); e != 0; e >>= 1) {
        if ((e & 1) != 0) r *= base;
        base *= base;
      }
      return static_cast<T>(r);
    } else {
      return std::pow(a, b);
    }
  }
};
struct SpecialAtan2 {
  template <typename T>
  static T Of(T y, T x) {
    return std::atan2(y, x);
  }
};
// 0 where x is 0, whatever y is.
struct SpecialXdivy {
  template <typename T>
  static T Of(T x, T y) {
    return x == T(0) ? T(0) : x / y;
  }
};
struct SpecialXlogy {
  template <typename T>
  static T Of(T x, T y) {
    return x == T(0) ? T(0) : x * std::log(y);
  }
};
struct SpecialXlog1py {
  template <typename T>
  static T Of(T x, T y) {
    if (x == T(0)) return T(0);
    if constexpr (std::is_floating_point_v<T>) {
      return x * std::log1p(y);
    } else {
      return x * std::log(T(1) + y);
    }
  }
};
struct SpecialNextAfter {
  template <typename T>
  static T Of(T a, T b) {
    return std::nextafter(a, b);
  }
};
template <double (*fn)(double, double)>
struct SpecialDouble {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(fn(static_cast<double>(a), static_cast<double>(b)));
  }
};
struct SpecialZeta {
  template <typename T>
  static T Of(T x, T q) {
    return HurwitzZeta(x, q);
  }
};
struct SpecialPolygamma {
  template <typename T>
  static T Of(T n, T x) {
    return Polygamma(n, x);
  }
};

IsaBinaryLoops PowLoops(Dtype t) {
  return IsInteger(t) ? LoopsAmong<SpecialPow, int8_t, int16_t, int32_t, int64_t>(t)
                      : InexactLoops<SpecialPow>(t);
}

IsaBinaryLoops Atan2Loops(Dtype t) {
  return ComputeType(t) == Dtype::kFloat
             ? Isa().binary[static_cast<int>(IsaBinary::kAtan2)][static_cast<int>(IsaType::kF32)]
             : FloatLoops<SpecialAtan2>(t);
}

struct SpecialOp {
  absl::string_view op;
  IsaBinaryLoops (*loops)(Dtype);
};
constexpr SpecialOp kSpecialOps[] = {
    {"Pow", PowLoops},
    {"Atan2", Atan2Loops},
    {"Xdivy", InexactLoops<SpecialXdivy>},
    {"Xlogy", InexactLoops<SpecialXlogy>},
    {"Xlog1py", InexactLoops<SpecialXlog1py>},
    {"NextAfter", FloatLoops<SpecialNextAfter>},
    {"Igamma", FloatLoops<SpecialDouble<IncompleteGamma>>},
    {"Igammac", FloatLoops<SpecialDouble<IncompleteGammaComplement>>},
    {"IgammaGradA", FloatLoops<SpecialDouble<IncompleteGammaGradient>>},
    {"RandomGammaGrad", FloatLoops<SpecialDouble<GammaSampleGradient>>},
    {"Zeta", FloatLoops<SpecialZeta>},
    {"Polygamma", FloatLoops<SpecialPolygamma>},
};

StatusOr<std::unique_ptr<KernelState>> PrepareSpecial(const Node& node) {
  const Dtype t = node.Type("T");
  for (const SpecialOp& row : kSpecialOps) {
    if (row.op != node.op()) continue;
    return MakeBinaryState(node, t, t, row.loops(t),
                           node.Is("Pow") ? OperandCheck::kExponent : OperandCheck::kNone, 1 << 10);
  }
  return Internal("no loops for ", node.op());
}

Status RunBetainc(OpContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  const Tensor& x = ctx.input(2);
  // Scalars broadcast; other shapes must agree.
  const Tensor* wide = a.rank() != 0 ? &a : b.rank() != 0 ? &b : &x;
  constexpr absl::string_view kNames[] = {"a", "b", "x"};
  for (int i = 0; i < 3; ++i) {
    const Tensor& t = ctx.input(i);
    if (t.rank() == 0 || t.shape() == wide->shape()) continue;
    const int first = wide == &a ? 0 : 1;
    return InvalidArgument("Shapes of ", kNames[first], " and ", kNames[i],
                           " are inconsistent: ", wide->shape().ToString(), " vs. ",
                           t.shape().ToString());
  }
  const Shape shape = wide->shape();
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  const auto at = [](const Tensor& t, int64_t i) {
    const int64_t k = t.rank() == 0 ? 0 : i;
    return t.dtype() == Dtype::kFloat ? static_cast<double>(t.data<float>()[k])
                                      : t.data<double>()[k];
  };
  for (int64_t i = 0; i < out->num_elements(); ++i) {
    const double v = IncompleteBeta(at(a, i), at(b, i), at(x, i));
    if (out->dtype() == Dtype::kFloat) {
      out->data<float>()[i] = static_cast<float>(v);
    } else {
      out->data<double>()[i] = v;
    }
  }
  return OkStatus();
}

constexpr DtypeSet kSpecialFloatTypes = kFloatTypes | kHalfTypes;
constexpr DtypeSet kSpecialInexactTypes = kSpecialFloatTypes | kComplexTypes;

constexpr Kernel kSpecialTable[] = {
    {"Pow", "T", kSpecialInexactTypes | kSignedIntTypes, "reference:pow", RunBinary,
     PrepareSpecial},
    {"Atan2", "T", kSpecialFloatTypes, "isa:atan2", RunBinary, PrepareSpecial},
    {"Xdivy", "T", kSpecialInexactTypes, "reference:xdivy", RunBinary, PrepareSpecial},
    {"Xlogy", "T", kSpecialInexactTypes, "reference:xlogy", RunBinary, PrepareSpecial},
    {"Xlog1py", "T", kSpecialInexactTypes, "reference:xlog1py", RunBinary, PrepareSpecial},
    {"NextAfter", "T", kFloatTypes, "reference:next_after", RunBinary, PrepareSpecial},
    {"Igamma", "T", kFloatTypes, "reference:igamma", RunBinary, PrepareSpecial},
    {"Igammac", "T", kFloatTypes, "reference:igammac", RunBinary, PrepareSpecial},
    {"IgammaGradA", "T", kFloatTypes, "reference:igamma_grad_a", RunBinary, PrepareSpecial},
    {"RandomGammaGrad", "T", kFloatTypes, "reference:gamma_sample_gradient", RunBinary,
     PrepareSpecial},
    {"Zeta", "T", kFloatTypes, "reference:zeta", RunBinary, PrepareSpecial},
    {"Polygamma", "T", kFloatTypes, "reference:polygamma", RunBinary, PrepareSpecial},
    {"Betainc", "T", kFloatTypes, "reference:betainc", RunBetainc},
};

}  // namespace

extern constinit const std::span<const Kernel> kSpecialKernels = kSpecialTable;

}  // namespace smelt
