#include "smelt/kernels/lite/fixed_functions.h"

#include <bit>
#include <memory>

namespace smelt::lite {
namespace {

// `Q(k)` in comments: k bits before the point, 15 - k behind it. Sums wrap.
constexpr int16_t kMost = std::numeric_limits<int16_t>::max();
constexpr int16_t kLeast = std::numeric_limits<int16_t>::min();
constexpr int16_t kOne = kMost;  // of Q0

int16_t Wrap(int32_t x) { return static_cast<int16_t>(static_cast<uint16_t>(x)); }

int16_t Constant(double x, int integer_bits) {
  const double raw = std::round(std::ldexp(x, 31 - integer_bits));
  return static_cast<int16_t>(DividedByPower(static_cast<int32_t>(raw), 16));
}

// exp(x) of Q0 in [-1/4, 0), by its series about -1/8.
int16_t ExpOfQuarter(int16_t a) {
  static const int16_t kAtEighth = Constant(std::exp(-0.125), 0);
  static const int16_t kThird = Constant(1.0 / 3, 0);
  const int16_t x = Wrap(a + (1 << 12));
  const int16_t x2 = FixedProduct(x, x), x3 = FixedProduct(x2, x), x4 = FixedProduct(x2, x2);
  const int16_t higher = Wrap(FixedProduct(Wrap(FixedLowered(x4, 2) + x3), kThird) + x2);
  const int16_t terms = Wrap(x + FixedLowered(higher, 1));
  const int32_t sum = kAtEighth + FixedProduct(kAtEighth, terms);
  return static_cast<int16_t>(std::clamp<int32_t>(sum, kLeast, kMost));
}

// exp(x) of x <= 0 in Q(bits), as Q0: that of what is beyond a multiple of 1/4, times powers of e
// for each bit of the rest.
int16_t ExpOfNegative(int16_t a, int bits) {
  const int fraction = 15 - bits;
  const auto quarter = static_cast<int16_t>(1 << (fraction - 2));
  const int16_t part = Wrap((a & (quarter - 1)) - quarter);
  int16_t out = ExpOfQuarter(FixedRaised(part, bits));
  const int16_t rest = Wrap(part - a);
  for (int power = -2; power <= 4 && power < bits; ++power) {
    if ((rest & (1 << (fraction + power))) == 0) continue;
    out = FixedProduct(out, Constant(std::exp(-std::ldexp(1.0, power)), 0));
  }
  if (bits > 5 && a < -(1 << (fraction + 5))) out = 0;
  return a == 0 ? kOne : out;
}

// 2 / (1 + x) of x in [0, 1], as Q2, by Newton's method.
int16_t TwiceInverseOfOnePlus(int16_t x) {
  static const int16_t kFirst = Constant(48.0 / 17, 2), kSlope = Constant(-32.0 / 17, 2);
  const auto half = static_cast<int16_t>((int32_t{x} + kOne + 1) / 2);
  int16_t y = Wrap(kFirst + FixedProduct(half, kSlope));
  for (int i = 0; i < 3; ++i) {
    const int16_t missing = Wrap((1 << 13) - FixedProduct(half, y));
    y = Wrap(y + FixedRaised(FixedProduct(y, missing), 2));
  }
  return y;
}

int16_t Negative(int16_t x) { return Wrap(-x); }

int16_t Sigmoid(int16_t x) {
  if (x == 0) return 1 << 14;
  const int16_t positive = x > 0 ? x : Negative(x);
  const int16_t y = FixedRaised(TwiceInverseOfOnePlus(ExpOfNegative(Negative(positive), 3)), 1);
  return x > 0 ? y : Wrap(kOne - y);
}

int16_t Tanh(int16_t x, int bits) {
  if (x == 0) return 0;
  const int16_t negative = x < 0 ? x : Negative(x);
  // The same bits read as twice the number.
  const int16_t inverse = TwiceInverseOfOnePlus(ExpOfNegative(negative, bits + 1));
  const int16_t y = FixedRaised(Wrap(inverse - (1 << 13)), 2);
  return x < 0 ? Negative(y) : y;
}

template <typename F>
const FixedTable* MakeTable(F fn) {
  auto table = std::make_unique<FixedTable>();
  for (int32_t x = kLeast; x <= kMost; ++x) {
    (*table)[static_cast<uint16_t>(x)] = fn(static_cast<int16_t>(x));
  }
  return table.release();
}

// x * 2^by of 32 bits; what is too large saturates.
int32_t RaisedWide(int32_t x, int by) {
  const int32_t most = static_cast<int32_t>((int64_t{1} << (31 - by)) - 1);
  if (x > most) return std::numeric_limits<int32_t>::max();
  if (x < -most) return std::numeric_limits<int32_t>::min();
  return ShiftedLeft(x, by);
}

}  // namespace

const FixedTable& SigmoidTable() {
  static const FixedTable* table = MakeTable(Sigmoid);
  return *table;
}

const FixedTable& TanhTable(int integer_bits) {
  static const auto tables = [] {
    std::array<const FixedTable*, kMostTanhBits + 1> out{};
    for (int bits = 0; bits <= kMostTanhBits; ++bits) {
      out[static_cast<size_t>(bits)] = MakeTable([bits](int16_t x) { return Tanh(x, bits); });
    }
    return out;
  }();
  return *tables[static_cast<size_t>(integer_bits)];
}

Factor InverseRoot(int32_t x) {
  if (x <= 1) return {std::numeric_limits<int32_t>::max(), 0};
  int right = 11;
  while (x >= 1 << 29) {
    x /= 4;
    ++right;
  }
  const int pairs = (std::countl_zero(static_cast<uint32_t>(x)) - 1) / 2 - 1;
  right -= pairs;
  x = ShiftedLeft(x, 2 * pairs);
  // Newton's method on numbers with three bits before the point.
  const int32_t half = DividedByPower(x >> 1, 1);
  constexpr int32_t kThreeHalves = (1 << 28) + (1 << 27);
  int32_t y = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int32_t cube = RaisedWide(DoublingHigh(DoublingHigh(y, y), y), 6);
    const int32_t next = static_cast<int32_t>(static_cast<uint32_t>(DoublingHigh(kThreeHalves, y)) -
                                              static_cast<uint32_t>(DoublingHigh(half, cube)));
    y = RaisedWide(next, 3);
  }
  constexpr int32_t kHalfRootOfTwo = 1518500250;
  Factor out = {DoublingHigh(y, kHalfRootOfTwo), -right};
  if (right < 0) out = {ShiftedLeft(out.fraction, -right), 0};
  return out;
}

}  // namespace smelt::lite
