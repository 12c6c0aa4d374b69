// Operations of two rows, comparisons, selections and conversions against one element at a time.
#include <algorithm>
#include <cstring>

#include "smelt/kernels/isa/isa.h"
#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

template <typename T>
T Apply(IsaBinary op, T a, T b) {
  // Integers wrap around.
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
  const Wide x = static_cast<Wide>(a), y = static_cast<Wide>(b);
  switch (op) {
    case IsaBinary::kAdd:
      return static_cast<T>(x + y);
    case IsaBinary::kSub:
      return static_cast<T>(x - y);
    case IsaBinary::kMul:
      return static_cast<T>(x * y);
    case IsaBinary::kDiv:
      return static_cast<T>(b == 0 && !std::is_floating_point_v<T> ? T{} : a / b);
    case IsaBinary::kMaximum:
      return a != a ? a : b != b ? b : std::max(a, b);
    case IsaBinary::kMinimum:
      return a != a ? a : b != b ? b : std::min(a, b);
    case IsaBinary::kSquaredDifference:
      return static_cast<T>((x - y) * (x - y));
    case IsaBinary::kAtan2:
      return static_cast<T>(std::atan2(static_cast<double>(a), static_cast<double>(b)));
    case IsaBinary::kCount:
      break;
  }
  return {};
}
template <typename T>
uint8_t Apply(IsaCompare op, T a, T b) {
  switch (op) {
    case IsaCompare::kEqual:
      return a == b;
    case IsaCompare::kNotEqual:
      return a != b;
    case IsaCompare::kLess:
      return a < b;
    case IsaCompare::kLessEqual:
      return a <= b;
    case IsaCompare::kGreater:
      return a > b;
    case IsaCompare::kGreaterEqual:
      return a >= b;
    case IsaCompare::kCount:
      break;
  }
  return 0;
}

// The three forms of an operation; `in_place`: over one of the operands.
template <typename T, typename R, typename Op>
void CheckLoops(const IsaBinaryLoops& loops, Op op, bool in_place) {
  for (const int64_t n : Lengths()) {
    const std::vector<T> a = Anything<T>(n + 1), b = Anything<T>(n + 1);
    const auto check = [&](const char* form, const std::vector<R>& out, auto left, auto right) {
      for (int64_t i = 0; i < n; ++i) {
        const R wanted = Apply(op, left(i), right(i));
        const bool exact = !std::is_same_v<Op, IsaBinary> ||
                           static_cast<int>(op) != static_cast<int>(IsaBinary::kAtan2);
        ASSERT_TRUE(exact ? Same(out[i], wanted)
                          : Near(static_cast<float>(out[i]), static_cast<double>(wanted), 6e-7))
            << form << ", op " << static_cast<int>(op) << ": " << +left(i) << ", " << +right(i)
            << " gives " << +out[i] << " for " << +wanted << ", " << n << " numbers, "
            << Isa().name;
      }
      ASSERT_TRUE(Same(out[n], static_cast<R>(77))) << form;
    };
    std::vector<R> out(n + 1, static_cast<R>(77));
    loops.vv(a.data(), b.data(), out.data(), n);
    check(
        "vv", out, [&](int64_t i) { return a[i]; }, [&](int64_t i) { return b[i]; });
    loops.vs(a.data(), b.data(), out.data(), n);
    check(
        "vs", out, [&](int64_t i) { return a[i]; }, [&](int64_t) { return b[0]; });
    loops.sv(a.data(), b.data(), out.data(), n);
    check(
        "sv", out, [&](int64_t) { return a[0]; }, [&](int64_t i) { return b[i]; });
    if constexpr (std::is_same_v<T, R>) {
      if (!in_place) continue;
      out = a;
      out[n] = 77;
      loops.vv(out.data(), b.data(), out.data(), n);
      check(
          "vv in place", out, [&](int64_t i) { return a[i]; }, [&](int64_t i) { return b[i]; });
    }
  }
}

template <typename T>
void CheckType(IsaType type) {
  SCOPED_TRACE(static_cast<int>(type));
  for (int i = 0; i < static_cast<int>(IsaBinary::kCount); ++i) {
    const IsaBinaryLoops& loops = Isa().binary[i][static_cast<int>(type)];
    const auto op = static_cast<IsaBinary>(i);
    const bool has = op == IsaBinary::kAtan2 ? type == IsaType::kF32
                     : op == IsaBinary::kDiv ? std::is_floating_point_v<T>
                                             : true;
    ASSERT_EQ(loops.vv != nullptr, has) << i;
    if (has) CheckLoops<T, T>(loops, op, true);
  }
  for (int i = 0; i < static_cast<int>(IsaCompare::kCount); ++i) {
    CheckLoops<T, uint8_t>(Isa().compare[i][static_cast<int>(type)], static_cast<IsaCompare>(i),
                           false);
  }
}
TEST(IsaBinary, Floats) { CheckType<float>(IsaType::kF32); }
TEST(IsaBinary, Doubles) { CheckType<double>(IsaType::kF64); }
TEST(IsaBinary, Integers) {
  CheckType<int32_t>(IsaType::kI32);
  CheckType<int64_t>(IsaType::kI64);
  CheckType<uint32_t>(IsaType::kU32);
  CheckType<uint64_t>(IsaType::kU64);
  CheckType<uint8_t>(IsaType::kU8);
  CheckType<int8_t>(IsaType::kI8);
}

template <typename W>
void CheckSelect(IsaSelectFn select) {
  for (const int64_t n : Lengths()) {
    const std::vector<W> a = Anything<W>(n + 1), b = Anything<W>(n + 1);
    std::vector<uint8_t> condition(n);
    for (uint8_t& c : condition) c = Random()() % 2;
    for (const int64_t a_step : {0, 1}) {
      for (const int64_t b_step : {0, 1}) {
        std::vector<W> out(n);
        select(condition.data(), a.data(), a_step, b.data(), b_step, out.data(), n);
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(out[i], condition[i] != 0 ? a[i * a_step] : b[i * b_step])
              << i << " of " << n << ", steps " << a_step << b_step;
        }
      }
    }
  }
}
TEST(IsaSelect, AnyWidth) {
  CheckSelect<uint8_t>(Isa().select1);
  CheckSelect<uint16_t>(Isa().select2);
  CheckSelect<uint32_t>(Isa().select4);
  CheckSelect<uint64_t>(Isa().select8);
}

template <typename From, typename To>
std::vector<To> Convert(IsaConvertFn convert, const std::vector<From>& x) {
  std::vector<To> y(x.size());
  convert(x.data(), y.data(), static_cast<int64_t>(x.size()));
  return y;
}
float FloatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
// What 16 bits say: sign, exponent, mantissa.
double ValueOf(uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, most = (1 << exponent_bits) - 1;
  const int exponent = bits >> mantissa_bits & most;
  const double mantissa = bits & ((1 << mantissa_bits) - 1), one = 1 << mantissa_bits;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == most) return mantissa != 0 ? double{kNaN} : sign * double{kInfinity};
  const int bias = most / 2;
  if (exponent == 0) return sign * std::ldexp(mantissa / one, 1 - bias);
  return sign * std::ldexp(1 + mantissa / one, exponent - bias);
}

// All of them, there and back.
TEST(IsaConvert, SixteenBits) {
  std::vector<uint16_t> all(1 << 16);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (const int exponent_bits : {5, 8}) {
    const bool half = exponent_bits == 5;
    const auto x = Convert<uint16_t, float>(half ? Isa().f16_to_f32 : Isa().bf16_to_f32, all);
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_TRUE(Same(double{x[i]}, ValueOf(all[i], exponent_bits)))
          << i << " of " << exponent_bits;
      ASSERT_EQ(std::signbit(x[i]), i >= 1 << 15) << i;
    }
    const auto back = Convert<float, uint16_t>(half ? Isa().f32_to_f16 : Isa().f32_to_bf16, x);
    for (size_t i = 0; i < all.size(); ++i) {
      // A NaN stays one, a quiet one of the same sign.
      const double value = ValueOf(back[i], exponent_bits);
      ASSERT_TRUE(std::isnan(x[i]) ? std::isnan(value) : back[i] == all[i]) << i;
    }
  }
}

// The nearest of those above and below; of two as near, the even one.
TEST(IsaConvert, RoundsToNearestEven) {
  std::vector<float> x;
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<uint32_t>(Random()());
    x.push_back(FloatOf(bits));
    x.push_back(FloatOf((bits & 0xffff0000u) | 0x8000u));
    // What half holds: numbers of about its exponents, halfway between two.
    const uint32_t moderate = 0x33000000u + bits % 0x15000000u;
    x.push_back(FloatOf(moderate));
    x.push_back(FloatOf((moderate & ~0x1fffu) | 0x1000u));
  }
  for (const int exponent_bits : {5, 8}) {
    const bool half = exponent_bits == 5;
    const auto y = Convert<float, uint16_t>(half ? Isa().f32_to_f16 : Isa().f32_to_bf16, x);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(ValueOf(y[i], exponent_bits)));
        continue;
      }
      const auto magnitude = static_cast<uint16_t>(y[i] & 0x7fff);
      const double wanted = std::abs(double{x[i]});
      // Infinity stands where the next number would.
      const auto value = [&](int m) {
        const int most = half ? 0x7c00 : 0x7f80;
        return m == most ? std::ldexp(1.0, half ? 16 : 128) : ValueOf(m, exponent_bits);
      };
      const double off = std::abs(value(magnitude) - wanted);
      ASSERT_EQ(y[i] >> 15 != 0, std::signbit(x[i]));
      if (std::isinf(x[i])) {
        ASSERT_TRUE(std::isinf(ValueOf(y[i], exponent_bits)));
        continue;
      }
      for (const int other : {magnitude - 1, magnitude + 1}) {
        if (other < 0 || other > (half ? 0x7c00 : 0x7f80)) continue;
        const double other_off = std::abs(value(other) - wanted);
        const bool over = wanted >= value(half ? 0x7c00 : 0x7f80);
        ASSERT_TRUE(over || off < other_off || (off == other_off && magnitude % 2 == 0))
            << x[i] << " became " << ValueOf(y[i], exponent_bits);
      }
    }
  }
}

template <typename From>
void CheckToFloat(IsaConvertFn convert) {
  for (const int64_t n : Lengths()) {
    const std::vector<From> x = Anything<From>(n);
    const auto y = Convert<From, float>(convert, x);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], static_cast<float>(x[i])) << i << " of " << n;
  }
}
TEST(IsaConvert, Integers) {
  CheckToFloat<uint8_t>(Isa().u8_to_f32);
  CheckToFloat<int8_t>(Isa().i8_to_f32);
  CheckToFloat<int32_t>(Isa().i32_to_f32);
  CheckToFloat<int64_t>(Isa().i64_to_f32);
  for (const int64_t n : Lengths()) {
    std::vector<float> x = Anything<float>(n);
    for (float& v : x) v *= Random()() % 4 == 0 ? 1e8f : 1.0f;
    const auto y = Convert<float, int32_t>(Isa().f32_to_i32, x);
    for (int64_t i = 0; i < n; ++i) {
      const bool fits = x[i] >= -2147483648.0f && x[i] < 2147483648.0f;
      ASSERT_EQ(y[i], fits ? static_cast<int32_t>(x[i]) : INT32_MIN) << x[i];
    }
  }
}

}  // namespace
}  // namespace smelt
