// Functions of 16-bit floats that take several steps. TensorFlow rounds each step to the type,
// which shows: elu of -0.0002 is 0 in half, as exp of it is 1. What a choice chooses from is
// computed before, for all: signs come in no order that a processor could foresee.
#include <array>
#include <cmath>

#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/rounded.h"
#include "smelt/kernels/elementwise/rows.h"

namespace smelt {
namespace {

// Rounding of floats to a 16-bit type. Arrays have at most kNarrowBlock values.
class Narrow {
 public:
  explicit Narrow(Widen type) : type_(type) {}

  void Round(float* x, int64_t n) const {
    std::array<uint16_t, kNarrowBlock> bits;
    const IsaTable& isa = Isa();
    const bool half = type_ == Widen::kHalf;
    (half ? isa.f32_to_f16 : isa.f32_to_bf16)(x, bits.data(), n);
    (half ? isa.f16_to_f32 : isa.bf16_to_f32)(bits.data(), x, n);
  }
  float Of(float x) const {
    Round(&x, 1);
    return x;
  }
  // exp of each, rounded.
  std::array<float, kNarrowBlock> Exp(const float* x, int64_t n) const {
    std::array<float, kNarrowBlock> e;
    Isa().unary[static_cast<int>(UnaryF32::kExp)](x, e.data(), n, 0);
    Round(e.data(), n);
    return e;
  }
  // The epsilon of TensorFlow's softplus, which is Eigen's: that of half is an eighth of the
  // type's.
  float Epsilon() const { return type_ == Widen::kHalf ? 0x1p-13F : 0x1p-7F; }

 private:
  const Widen type_;
};

void NarrowElu(Widen w, float* x, int64_t n, float) {
  const auto e = Narrow(w).Exp(x, n);
  for (int64_t i = 0; i < n; ++i) {
    const float below = e[i] - 1;
    x[i] = x[i] < 0 ? below : x[i];
  }
}

void NarrowSelu(Widen w, float* x, int64_t n, float) {
  const Narrow t(w);
  auto e = t.Exp(x, n);
  for (int64_t i = 0; i < n; ++i) e[i] -= 1;
  t.Round(e.data(), n);
  const float below = t.Of(1.7580993408473768F), above = t.Of(1.0507009873554805F);
  for (int64_t i = 0; i < n; ++i) {
    const float low = below * e[i], high = above * x[i];
    x[i] = x[i] < 0 ? low : high;
  }
}

void NarrowLeakyRelu(Widen w, float* x, int64_t n, float alpha) {
  Isa().unary[static_cast<int>(UnaryF32::kLeakyRelu)](x, x, n, Narrow(w).Of(alpha));
}

void NarrowSigmoid(Widen w, float* x, int64_t n, float) {
  const Narrow t(w);
  const auto e = t.Exp(x, n);
  std::array<float, kNarrowBlock> below;
  for (int64_t i = 0; i < n; ++i) below[i] = 1 + e[i];
  t.Round(below.data(), n);
  for (int64_t i = 0; i < n; ++i) {
    const float share = e[i] / below[i];
    x[i] = e[i] == INFINITY ? 1 : share;
  }
}

void NarrowSoftplus(Widen w, float* x, int64_t n, float) {
  const Narrow t(w);
  const auto e = t.Exp(x, n);
  std::array<float, kNarrowBlock> middle;
  Isa().unary[static_cast<int>(UnaryF32::kLog1p)](e.data(), middle.data(), n, 0);
  const float edge = t.Of(t.Of(std::log(t.Epsilon())) + 2);
  for (int64_t i = 0; i < n; ++i) {
    const float y = x[i] < edge ? e[i] : middle[i];
    x[i] = x[i] > -edge ? x[i] : y;
  }
}

void NarrowSoftsign(Widen w, float* x, int64_t n, float) {
  std::array<float, kNarrowBlock> below;
  for (int64_t i = 0; i < n; ++i) below[i] = 1 + std::abs(x[i]);
  Narrow(w).Round(below.data(), n);
  for (int64_t i = 0; i < n; ++i) x[i] /= below[i];
}

struct NarrowRow {
  absl::string_view op;
  NarrowFn fn;
};
constexpr NarrowRow kNarrowRows[] = {
    {"Elu", NarrowElu},         {"Selu", NarrowSelu},         {"LeakyRelu", NarrowLeakyRelu},
    {"Sigmoid", NarrowSigmoid}, {"Softplus", NarrowSoftplus}, {"Softsign", NarrowSoftsign},
};

struct StepsSquaredDifference {
  template <typename T>
  static T Of(T x, T y) {
    return (x - y) * (x - y);
  }
};
struct StepsFloorDiv {
  template <typename T>
  static T Of(T x, T y) {
    return floor(x / y);
  }
};
struct StepsXlogy {
  template <typename T>
  static T Of(T x, T y) {
    return x == T(0) ? T(0) : x * log(y);
  }
};
struct StepsXlog1py {
  template <typename T>
  static T Of(T x, T y) {
    return x == T(0) ? T(0) : x * log1p(y);
  }
};

template <typename F>
struct EachStep {
  template <typename T>
  static T Of(T x, T y) {
    return FromStepwise<T>(F::template Of<Rounded<T>>(Rounded<T>(x), Rounded<T>(y)));
  }
};

struct NarrowBinaryRow {
  absl::string_view op;
  IsaBinaryLoops half, bfloat16;
};
template <typename F>
constexpr NarrowBinaryRow BothTypes(absl::string_view op) {
  return {op, BinaryRows<EachStep<F>, Half, Half>::kLoops,
          BinaryRows<EachStep<F>, Bfloat16, Bfloat16>::kLoops};
}
constexpr NarrowBinaryRow kNarrowBinaryRows[] = {
    // bfloat16 has a loop in registers (isa/bfloat16.h).
    {"SquaredDifference", BinaryRows<EachStep<StepsSquaredDifference>, Half, Half>::kLoops, {}},
    BothTypes<StepsFloorDiv>("FloorDiv"),
    BothTypes<StepsXlogy>("Xlogy"),
    BothTypes<StepsXlog1py>("Xlog1py"),
};

}  // namespace

IsaBinaryLoops NarrowBinary(absl::string_view op, Widen type) {
  for (const NarrowBinaryRow& row : kNarrowBinaryRows) {
    if (row.op == op && type != Widen::kNone) return type == Widen::kHalf ? row.half : row.bfloat16;
  }
  return {};
}

NarrowFn NarrowActivation(absl::string_view op) {
  for (const NarrowRow& row : kNarrowRows) {
    if (row.op == op) return row.fn;
  }
  return nullptr;
}

}  // namespace smelt
