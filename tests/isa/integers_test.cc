// Integer loops of whole vectors: quotients and remainders of every operand form against 64-bit
// arithmetic. The op cases hold TensorFlow's answers, on few elements.
#include "smelt/kernels/isa/integers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace smelt {
namespace {

struct Wanted {
  int64_t truncated, floored, rest_truncated, rest_floored;
};
Wanted Divide(int64_t a, int64_t b) {
  Wanted w = {a / b, a / b, a % b, a % b};
  if (a % b != 0 && (a < 0) != (b < 0)) {
    --w.floored;
    w.rest_floored += b;
  }
  return w;
}

template <typename T>
void Check(IsaType type) {
  constexpr int64_t kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  std::mt19937_64 rng(7);
  std::uniform_int_distribution<int64_t> any(kLeast, kMost),
      small(std::max<int64_t>(kLeast, -9), 9);
  std::vector<T> a(1003), b(a.size()), out(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    b[i] = static_cast<T>(i % 3 == 0 ? small(rng) : any(rng));
    if (b[i] == 0) b[i] = 3;
    // Every second one a multiple of its divisor, where there is room.
    a[i] = static_cast<T>(i % 2 == 0 ? small(rng) * small(rng) * b[i] : any(rng));
  }
  a[500] = static_cast<T>(kLeast), b[500] = static_cast<T>(kLeast < 0 ? -1 : 1);
  struct Row {
    IntegerBinary op;
    int64_t Wanted::*wanted;
  };
  for (const Row& row : {Row{IntegerBinary::kDivTruncate, &Wanted::truncated},
                         Row{IntegerBinary::kDivFloor, &Wanted::floored},
                         Row{IntegerBinary::kModTruncate, &Wanted::rest_truncated},
                         Row{IntegerBinary::kModFloor, &Wanted::rest_floored}}) {
    const IsaBinaryLoops loops = IntegerLoops(row.op, type);
    ASSERT_NE(loops.vv, nullptr);
    const auto n = static_cast<int64_t>(a.size());
    loops.vv(a.data(), b.data(), out.data(), n);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(out[i], static_cast<T>(Divide(a[i], b[i]).*row.wanted)) << a[i] << " by " << b[i];
    }
    for (size_t k = 0; k < 600; k += 20) {
      loops.vs(a.data(), &b[k], out.data(), n);
      for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(out[i], static_cast<T>(Divide(a[i], b[k]).*row.wanted)) << a[i] << " by " << b[k];
      }
      loops.sv(&a[k], b.data(), out.data(), n);
      for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(out[i], static_cast<T>(Divide(a[k], b[i]).*row.wanted)) << a[k] << " by " << b[i];
      }
    }
  }
}

TEST(Integers, Divide) {
  Check<int32_t>(IsaType::kI32);
  Check<uint32_t>(IsaType::kU32);
}

}  // namespace
}  // namespace smelt
