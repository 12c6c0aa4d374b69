// Divisions, remainders and the bitwise ops.
#include <bit>
#include <cmath>
#include <complex>
#include <limits>

#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/rows.h"
#include "smelt/kernels/isa/bfloat16.h"

namespace smelt {
namespace {

// No divisor is 0: OperandCheck sees to it. The one overflow left, least / -1, wraps around.
template <typename T>
T WrapQuotient(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(a));
  }
  return static_cast<T>(a / b);
}

struct DivReal {
  template <typename T>
  static T Of(T a, T b) {
    return a / b;
  }
};
struct DivTruncate {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return WrapQuotient(a, b);
    } else {
      return std::trunc(a / b);
    }
  }
};
struct DivFloor {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      const T q = WrapQuotient(a, b);
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return q;
        if (a % b != 0 && (a < 0) != (b < 0)) return static_cast<T>(q - 1);
      }
      return q;
    } else {
      return std::floor(a / b);
    }
  }
};
// Quotients that are rounded to the narrow type before they lose their fraction.
template <typename Narrow, typename F>
struct DivNarrow {
  template <typename T>
  static T Of(T a, T b) {
    return F::Of(static_cast<float>(static_cast<Narrow>(a / b)), 1.0f);
  }
};
struct DivNoNanOf {
  template <typename T>
  static T Of(T a, T b) {
    return b == T(0) ? T(0) : a / b;
  }
};
struct ModTruncate {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return 0;
      }
      return static_cast<T>(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};
// The remainder has the divisor's sign.
struct ModFloor {
  template <typename T>
  static T Of(T a, T b) {
    const T r = ModTruncate::Of(a, b);
    if constexpr (std::is_unsigned_v<T>) {
      return r;
    } else {
      return r != T(0) && (r < T(0)) != (b < T(0)) ? static_cast<T>(r + b) : r;
    }
  }
};

template <typename F>
IsaBinaryLoops IntOrFloatLoops(IntegerBinary op, Dtype t) {
  return IsInteger(t) ? IntegerLoopsOr<F>(op, t) : FloatLoops<F>(t);
}

StatusOr<std::unique_ptr<KernelState>> PrepareDivision(const Node& node) {
  const Dtype t = node.Type("T");
  IsaBinaryLoops loops;
  if (node.Is("Div") || node.Is("RealDiv")) {
    if (t == Dtype::kBfloat16) {
      ASSIGN_OR_RETURN(auto state, MakeBinaryState(node, t, t, Bfloat16Loops(IsaBinary::kDiv)));
      static_cast<BinaryState*>(state.get())->widen = Widen::kNone;
      return state;
    }
    IsaType type;
    if (IsInteger(t)) {
      loops = IntegerLoopsOr<DivTruncate>(IntegerBinary::kDivTruncate, t);
    } else if (IsaTypeOf(ComputeType(t), &type)) {
      loops = Isa().binary[static_cast<int>(IsaBinary::kDiv)][static_cast<int>(type)];
    } else {
      loops = ComplexLoops<DivReal>(t);
    }
  } else if (node.Is("TruncateDiv")) {
    loops = t == Dtype::kHalf ? LoopsAmong<DivNarrow<Half, DivTruncate>, float>(Dtype::kFloat)
            : t == Dtype::kBfloat16
                ? LoopsAmong<DivNarrow<Bfloat16, DivTruncate>, float>(Dtype::kFloat)
                : IntOrFloatLoops<DivTruncate>(IntegerBinary::kDivTruncate, t);
  } else if (node.Is("FloorDiv")) {
    loops = IntOrFloatLoops<DivFloor>(IntegerBinary::kDivFloor, t);
  } else if (node.Is("FloorMod")) {
    loops = IntOrFloatLoops<ModFloor>(IntegerBinary::kModFloor, t);
  } else if (node.Is("DivNoNan")) {
    loops = InexactLoops<DivNoNanOf>(t);
  } else {
    loops = IntOrFloatLoops<ModTruncate>(IntegerBinary::kModTruncate, t);
  }
  const OperandCheck check = node.Is("TruncateDiv") || node.Is("TruncateMod")
                                 ? OperandCheck::kDivisorInternal
                                 : OperandCheck::kDivisor;
  return MakeBinaryState(node, t, t, loops, check, 1 << 14);
}

struct BitsAnd {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitsOr {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitsXor {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
// Distances are clamped to [0, width - 1]: C++ leaves others undefined.
template <typename T>
int ShiftOf(T b) {
  constexpr int kMost = static_cast<int>(sizeof(T)) * 8 - 1;
  if (b < T(0)) return 0;
  return static_cast<uint64_t>(b) > kMost ? kMost : static_cast<int>(b);
}
struct BitsLeft {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) << ShiftOf(b));
  }
};
struct BitsRight {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a >> ShiftOf(b));
  }
};

StatusOr<std::unique_ptr<KernelState>> PrepareBitwise(const Node& node) {
  const Dtype t = node.Type("T");
  IsaBinaryLoops loops;
  if (node.Is("BitwiseAnd")) {
    loops = IntegerLoopsOr<BitsAnd>(IntegerBinary::kAnd, t);
  } else if (node.Is("BitwiseOr")) {
    loops = IntegerLoopsOr<BitsOr>(IntegerBinary::kOr, t);
  } else if (node.Is("BitwiseXor")) {
    loops = IntegerLoopsOr<BitsXor>(IntegerBinary::kXor, t);
  } else if (node.Is("LeftShift")) {
    loops = IntegerLoopsOr<BitsLeft>(IntegerBinary::kShiftLeft, t);
  } else {
    loops = IntegerLoopsOr<BitsRight>(IntegerBinary::kShiftRight, t);
  }
  return MakeBinaryState(node, t, t, loops);
}

template <typename T>
struct BitsCount {
  static uint8_t Of(T x) { return static_cast<uint8_t>(std::popcount(x)); }
};
struct BitsInvert {
  template <typename T>
  static T Of(T x) {
    return static_cast<T>(~x);
  }
};

// Signed integers are counted as unsigned ones of their size, which std::popcount demands.
UnaryFn CountRow(Dtype t) {
  switch (DtypeSize(t)) {
    case 1:
      return UnaryRow<BitsCount<uint8_t>, uint8_t, uint8_t>;
    case 2:
      return UnaryRow<BitsCount<uint16_t>, uint16_t, uint8_t>;
    case 4:
      return UnaryRow<BitsCount<uint32_t>, uint32_t, uint8_t>;
    default:
      return UnaryRow<BitsCount<uint64_t>, uint64_t, uint8_t>;
  }
}

StatusOr<std::unique_ptr<KernelState>> PrepareBitsUnary(const Node& node) {
  const Dtype t = node.Type("T");
  if (node.Is("PopulationCount")) return MakeUnaryState(node, t, Dtype::kUint8, CountRow(t));
  return MakeUnaryState(node, t, t, IntegerRowOr<BitsInvert>(IntegerUnary::kInvert, t));
}

constexpr DtypeSet kDivFloatTypes = kFloatTypes | kHalfTypes;
constexpr DtypeSet kDivInexact = kDivFloatTypes | kComplexTypes;
constexpr DtypeSet kModTypes = kFloatTypes | kHalfTypes | kIndexTypes;

constexpr Kernel kDivisionTable[] = {
    {"Div", "T", kNumberTypes, "isa:div", RunBinary, PrepareDivision},
    {"RealDiv", "T", kDivInexact, "isa:div", RunBinary, PrepareDivision},
    {"FloorDiv", "T", kRealTypes, "isa:floor_div", RunBinary, PrepareDivision},
    {"TruncateDiv", "T", kRealTypes, "isa:truncate_div", RunBinary, PrepareDivision},
    {"FloorMod", "T", kRealTypes, "isa:floor_mod", RunBinary, PrepareDivision},
    {"TruncateMod", "T", kModTypes, "isa:truncate_mod", RunBinary, PrepareDivision},
    {"DivNoNan", "T", kDivInexact, "reference:div_no_nan", RunBinary, PrepareDivision},
    {"BitwiseAnd", "T", kIntTypes, "isa:bitwise_and", RunBinary, PrepareBitwise},
    {"BitwiseOr", "T", kIntTypes, "isa:bitwise_or", RunBinary, PrepareBitwise},
    {"BitwiseXor", "T", kIntTypes, "isa:bitwise_xor", RunBinary, PrepareBitwise},
    {"LeftShift", "T", kIntTypes, "isa:left_shift", RunBinary, PrepareBitwise},
    {"RightShift", "T", kIntTypes, "isa:right_shift", RunBinary, PrepareBitwise},
    {"Invert", "T", kIntTypes, "isa:invert", RunUnary, PrepareBitsUnary},
    {"PopulationCount", "T", kIntTypes, "reference:population_count", RunUnary, PrepareBitsUnary},
};

}  // namespace

extern constinit const std::span<const Kernel> kDivisionKernels = kDivisionTable;

}  // namespace smelt
