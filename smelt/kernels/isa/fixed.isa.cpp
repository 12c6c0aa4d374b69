#include "smelt/kernels/isa/fixed.h"

#include "smelt/kernels/isa/loop.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
namespace {

inline __attribute__((always_inline)) int32_t Shifted(int32_t x, int left) {
  return static_cast<int32_t>(static_cast<uint32_t>(x) << left);
}

template <typename T>
void From(const T* x, int64_t step, int32_t zero, int left, int32_t* y, int64_t n) {
  if (step == 0) {
    const int32_t v = Shifted(int32_t{*x} - zero, left);
    for (int64_t i = 0; i < n; ++i) y[i] = v;
    return;
  }
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) y[i] = Shifted(int32_t{x[i]} - zero, left);
}

void Times(int32_t* x, int64_t n, FixedFactor factor) {
  const auto fraction = int64_t{factor.fraction};
  const int left = factor.left, right = factor.right;
  const auto mask = static_cast<int32_t>((int64_t{1} << right) - 1);
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) {
    const int64_t product = int64_t{Shifted(x[i], left)} * fraction;
    const auto high = static_cast<int32_t>((product + (int64_t{1} << 30)) >> 31);
    const int32_t rest = high & mask, threshold = (mask >> 1) + (high < 0 ? 1 : 0);
    x[i] = (high >> right) + (rest > threshold ? 1 : 0);
  }
}

template <typename T>
void To(const int32_t* x, int32_t zero, int32_t low, int32_t high, T* y, int64_t n) {
  const int32_t least = low - zero, most = high - zero;
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) {
    int32_t v = x[i] < least ? least : x[i];
    v = v > most ? most : v;
    y[i] = static_cast<T>(v + zero);
  }
}

}  // namespace

void FillFixed(FixedLoops& t);
void FillFixed(FixedLoops& t) {
  t.from_int8 = From<int8_t>;
  t.from_int16 = From<int16_t>;
  t.times = Times;
  t.to_int8 = To<int8_t>;
  t.to_int16 = To<int16_t>;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
