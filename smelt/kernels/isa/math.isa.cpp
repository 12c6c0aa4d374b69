// Functions of one float, alone and after adding a bias.
#include <cstdint>

#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/loop.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillMath(IsaTable& t);
namespace {

#include "smelt/kernels/isa/vector_math.inc"

#define SMELT_UNARY(Name, expression)                \
  struct Name##Fn {                                  \
    static SMELT_FN float Of(float x, float alpha) { \
      (void)alpha;                                   \
      return expression;                             \
    }                                                \
  };
SMELT_UNARY(Identity, x)
// A comparison with NaN is false: these are written so that NaN then passes.
SMELT_UNARY(Relu, x <= 0.0f ? 0.0f : x)
SMELT_UNARY(Relu6, (x <= 0.0f ? 0.0f : (x > 6.0f ? 6.0f : x)))
SMELT_UNARY(LeakyRelu, x > 0.0f ? x : x * alpha)
// exp(x) - 1 as TensorFlow has it, which is 0 where expm1(x) is x: what asks for the sign sees it.
SMELT_UNARY(Elu, x < 0.0f ? Exp(x) - 1.0f : x)
SMELT_UNARY(Selu, x < 0.0f ? 1.7580993408473768599402175208123f * (Exp(x) - 1.0f)
                           : 1.0507009873554804934193349852946f * x)
SMELT_UNARY(Tanh, Tanh(x))
SMELT_UNARY(Sigmoid, Sigmoid(x))
SMELT_UNARY(Swish, Swish(x))
SMELT_UNARY(HardSwish, x*(x <= -3.0f ? 0.0f : (x >= 3.0f ? 6.0f : x + 3.0f)) * 0.16666667f)
SMELT_UNARY(GeluErf, GeluErf(x))
SMELT_UNARY(GeluTanh,
            0.5f * x * (1.0f + Tanh(0.79788456080286535588f * (x + 0.044715f * (x * x * x)))))
SMELT_UNARY(Softplus, Softplus(x))
SMELT_UNARY(Softsign, x / (1.0f + AbsOf(x)))
SMELT_UNARY(Abs, AbsOf(x))
SMELT_UNARY(Neg, -x)
SMELT_UNARY(Sign, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x))
SMELT_UNARY(Square, x* x)
SMELT_UNARY(Sqrt, __builtin_sqrtf(x))
SMELT_UNARY(Rsqrt, 1.0f / __builtin_sqrtf(x))
SMELT_UNARY(Reciprocal, 1.0f / x)
SMELT_UNARY(Exp, Exp(x))
SMELT_UNARY(Expm1, Expm1(x))
SMELT_UNARY(Log, Log(x))
SMELT_UNARY(Log1p, Log1p(x))
SMELT_UNARY(Erf, Erf(x))
SMELT_UNARY(Erfc, Erfc(x))
SMELT_UNARY(Asin, Asin(x))
SMELT_UNARY(Acos, Acos(x))
SMELT_UNARY(Atan, Atan(x))
SMELT_UNARY(Asinh, Asinh(x))
SMELT_UNARY(Acosh, Acosh(x))
SMELT_UNARY(Atanh, Atanh(x))
SMELT_UNARY(Floor, __builtin_floorf(x))
SMELT_UNARY(Ceil, __builtin_ceilf(x))
SMELT_UNARY(Rint, __builtin_rintf(x))
#undef SMELT_UNARY

template <typename F>
void Row(const float* x, float* y, int64_t n, float alpha) {
  SMELT_LOOP
  for (int64_t i = 0; i < n; ++i) y[i] = F::Of(x[i], alpha);
}
template <typename F>
void BiasRow(const float* x, const float* bias, float* y, int64_t n, float alpha) {
  SMELT_LOOP
  for (int64_t i = 0; i < n; ++i) y[i] = F::Of(x[i] + bias[i], alpha);
}

struct Atan2Op {
  template <typename T>
  static SMELT_FN T Of(T y, T x) {
    return Atan2(y, x);
  }
};
#include "smelt/kernels/isa/binary_rows.inc"

// Below this the argument reduction of SinQuarter is accurate; libm computes the rest.
constexpr float kSinLimit = 1e6f;

template <int kQuarter>
void SinRow(const float* x, float* y, int64_t n, float) {
  constexpr int64_t kBlock = 256;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    const float* a = x + begin;
    float* b = y + begin;
    int wide = 0;
    for (int64_t i = 0; i < count; ++i) wide |= AbsOf(a[i]) < kSinLimit ? 0 : 1;
    // What a number becomes does not depend on its neighbors: `b` may be `a`, so those are kept.
    float kept[kBlock];
    if (wide != 0) {
      for (int64_t i = 0; i < count; ++i) kept[i] = a[i];
    }
    SMELT_LOOP
    for (int64_t i = 0; i < count; ++i) {
      const float v = SinQuarter(a[i], kQuarter);
      b[i] = kQuarter == 0 && a[i] == 0.0f ? a[i] : v;
    }
    for (int64_t i = 0; wide != 0 && i < count; ++i) {
      if (AbsOf(kept[i]) < kSinLimit) continue;
      b[i] = kQuarter == 0 ? __builtin_sinf(kept[i]) : __builtin_cosf(kept[i]);
    }
  }
}
template <int kQuarter>
void BiasSinRow(const float* x, const float* bias, float* y, int64_t n, float) {
  SMELT_LOOP
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + bias[i];
  SinRow<kQuarter>(y, y, n, 0.0f);
}

// Squares of what is scaled neither overflow nor lose what counts.
void Modulus(const void* numbers, void* moduli, int64_t n) {
  const float* x = static_cast<const float*>(numbers);
  float* y = static_cast<float*>(moduli);
  SMELT_LOOP
  for (int64_t i = 0; i < n; ++i) {
    const float re = AbsOf(x[2 * i]), im = AbsOf(x[2 * i + 1]);
    const float large = re > im ? re : im;
    const float scale = large > 0x1p60f ? 0x1p-66f : (large < 0x1p-40f ? 0x1p100f : 1.0f);
    const float back = large > 0x1p60f ? 0x1p66f : (large < 0x1p-40f ? 0x1p-100f : 1.0f);
    const float a = re * scale, b = im * scale;
    const float modulus = __builtin_sqrtf(a * a + b * b) * back;
    const bool infinite = (re == __builtin_inff()) | (im == __builtin_inff());
    y[i] = infinite ? __builtin_inff() : modulus;
  }
}

}  // namespace

void FillMath(IsaTable& t) {
#define SMELT_FILL(Name)                                        \
  t.unary[static_cast<int>(UnaryF32::k##Name)] = Row<Name##Fn>; \
  t.bias_unary[static_cast<int>(UnaryF32::k##Name)] = BiasRow<Name##Fn>
  SMELT_FILL(Identity);
  SMELT_FILL(Relu);
  SMELT_FILL(Relu6);
  SMELT_FILL(LeakyRelu);
  SMELT_FILL(Elu);
  SMELT_FILL(Selu);
  SMELT_FILL(Tanh);
  SMELT_FILL(Sigmoid);
  SMELT_FILL(Swish);
  SMELT_FILL(HardSwish);
  SMELT_FILL(GeluErf);
  SMELT_FILL(GeluTanh);
  SMELT_FILL(Softplus);
  SMELT_FILL(Softsign);
  SMELT_FILL(Abs);
  SMELT_FILL(Neg);
  SMELT_FILL(Sign);
  SMELT_FILL(Square);
  SMELT_FILL(Sqrt);
  SMELT_FILL(Rsqrt);
  SMELT_FILL(Reciprocal);
  SMELT_FILL(Exp);
  SMELT_FILL(Expm1);
  SMELT_FILL(Log);
  SMELT_FILL(Log1p);
  SMELT_FILL(Erf);
  SMELT_FILL(Erfc);
  SMELT_FILL(Asin);
  SMELT_FILL(Acos);
  SMELT_FILL(Atan);
  SMELT_FILL(Asinh);
  SMELT_FILL(Acosh);
  SMELT_FILL(Atanh);
  SMELT_FILL(Floor);
  SMELT_FILL(Ceil);
  SMELT_FILL(Rint);
#undef SMELT_FILL
  t.binary[static_cast<int>(IsaBinary::kAtan2)][static_cast<int>(IsaType::kF32)] =
      RowsOf<Atan2Op, float, float>();
  t.modulus = Modulus;
  t.unary[static_cast<int>(UnaryF32::kSin)] = SinRow<0>;
  t.unary[static_cast<int>(UnaryF32::kCos)] = SinRow<1>;
  t.bias_unary[static_cast<int>(UnaryF32::kSin)] = BiasSinRow<0>;
  t.bias_unary[static_cast<int>(UnaryF32::kCos)] = BiasSinRow<1>;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
