// What reductions make of numbers: how two are combined in each accumulator, how elements of a
// dtype are read as accumulators, and what a result is in its dtype.
#ifndef SMELT_KERNELS_REDUCE_REDUCE_NUMBERS_H_
#define SMELT_KERNELS_REDUCE_REDUCE_NUMBERS_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "smelt/kernels/isa/columns.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

enum class Reduction : uint8_t { kSum, kMean, kProd, kMax, kMin, kNorm };

using ReduceComplex = std::complex<double>;

// `Add` combines an accumulator and an element, `Merge` two accumulators. Floats are added in float
// within a block and in double between blocks.
template <Reduction kOp, typename Acc>
struct ReduceCombine {
  static constexpr bool kOrdered = kOp == Reduction::kMax || kOp == Reduction::kMin;
  using Wide = std::conditional_t<std::is_same_v<Acc, float> && !kOrdered, double, Acc>;

  template <typename A>
  static A Init() {
    if constexpr (kOp == Reduction::kProd) {
      return A(1);
    } else if constexpr (kOrdered) {
      using Limits = std::numeric_limits<A>;
      if constexpr (Limits::has_infinity) {
        return kOp == Reduction::kMax ? -Limits::infinity() : Limits::infinity();
      } else {
        return kOp == Reduction::kMax ? Limits::min() : Limits::max();
      }
    } else {
      return A(0);
    }
  }
  template <typename A>
  static A Merge(A a, A b) {
    if constexpr (kOp == Reduction::kProd) {
      return a * b;
    } else if constexpr (kOp == Reduction::kMax) {
      return b > a || b != b ? b : a;  // NaN wins
    } else if constexpr (kOp == Reduction::kMin) {
      return b < a || b != b ? b : a;
    } else {
      return a + b;
    }
  }
  static Acc Add(Acc a, Acc x) {
    if constexpr (kOp == Reduction::kNorm) {
      if constexpr (std::is_same_v<Acc, ReduceComplex>) {
        return a + std::norm(x);
      } else {
        return a + x * x;
      }
    } else {
      return Merge(a, x);
    }
  }

  // A block of a row. Eight partial results hide the latency of the operation.
  static Acc Block(const Acc* x, int64_t n) {
    if constexpr (std::is_same_v<Acc, float>) {
      if constexpr (kOp == Reduction::kSum) return Isa().sum(x, n);
      if constexpr (kOp == Reduction::kMax) return Isa().max(x, n);
      if constexpr (kOp == Reduction::kMin) return Isa().min(x, n);
      if constexpr (kOp == Reduction::kNorm) return Isa().sum_squares(x, n, 0.0f);
    }
    constexpr int kLanes = 8;
    Acc total = Init<Acc>();
    int64_t i = 0;
    if (n >= 2 * kLanes) {
      Acc lanes[kLanes];
      for (Acc& l : lanes) l = Init<Acc>();
      for (; i + kLanes <= n; i += kLanes) {
        for (int l = 0; l < kLanes; ++l) lanes[l] = Add(lanes[l], x[i + l]);
      }
      for (const Acc& l : lanes) total = Merge(total, l);
    }
    for (; i < n; ++i) total = Add(total, x[i]);
    return total;
  }
  // One row of a strip: acc[j] takes x[j].
  static void Columns(Acc* acc, const Acc* x, int64_t n) {
    if constexpr (std::is_same_v<Acc, float> && kOp != Reduction::kNorm) {
      if (n >= 8) {
        constexpr IsaBinary op = kOp == Reduction::kSum    ? IsaBinary::kAdd
                                 : kOp == Reduction::kProd ? IsaBinary::kMul
                                 : kOp == Reduction::kMax  ? IsaBinary::kMaximum
                                                           : IsaBinary::kMinimum;
        Isa().binary[static_cast<int>(op)][static_cast<int>(IsaType::kF32)].vv(acc, x, acc, n);
        return;
      }
    }
    for (int64_t j = 0; j < n; ++j) acc[j] = Add(acc[j], x[j]);
  }
};

using ReduceLoad = void (*)(const void* from, int64_t begin, int64_t n, void* acc);
using ReduceStore = void (*)(const void* wide, int64_t n, int64_t count, void* to, int64_t begin);

template <typename T, typename Acc>
void LoadReduced(const void* from, int64_t begin, int64_t n, void* acc) {
  const T* x = static_cast<const T*>(from) + begin;
  Acc* a = static_cast<Acc*>(acc);
  for (int64_t i = 0; i < n; ++i) a[i] = static_cast<Acc>(x[i]);
}

// Halves whose squares are to be added: TensorFlow's squares are halves, so that those of large
// numbers are infinite and those of small ones 0.
inline void LoadSquaredHalf(const void* from, int64_t begin, int64_t n, void* acc) {
  LoadReduced<Half, float>(from, begin, n, acc);
  float* a = static_cast<float*>(acc);
  for (int64_t i = 0; i < n; ++i) {
    const auto square = static_cast<float>(Half(a[i] * a[i]));
    if (square == 0 || std::isinf(square)) a[i] = square;
  }
}

inline void LoadReducedBfloat16(const void* from, int64_t begin, int64_t n, void* acc) {
  Isa().bf16_to_f32(static_cast<const uint16_t*>(from) + begin, acc, n);
}

// 64-bit words: integers sign- or zero-extended.
template <typename T>
void LoadReducedWord(const void* from, int64_t begin, int64_t n, void* acc) {
  const T* x = static_cast<const T*>(from) + begin;
  uint64_t* a = static_cast<uint64_t*>(acc);
  for (int64_t i = 0; i < n; ++i) a[i] = static_cast<uint64_t>(static_cast<int64_t>(x[i]));
}

template <typename T, Reduction kOp, typename Wide>
T FinishReduced(Wide w, int64_t count) {
  if constexpr (std::is_same_v<Wide, ReduceComplex>) {
    using Real = typename T::value_type;
    if constexpr (kOp == Reduction::kNorm) return T(static_cast<Real>(std::sqrt(w.real())), 0);
    if constexpr (kOp == Reduction::kMean) w /= static_cast<double>(count);
    return T(static_cast<Real>(w.real()), static_cast<Real>(w.imag()));
  } else if constexpr (std::is_integral_v<Wide> && !std::is_same_v<T, bool>) {
    if constexpr (kOp == Reduction::kMean) {
      if (std::is_unsigned_v<T>) return static_cast<T>(w / static_cast<uint64_t>(count));
      return static_cast<T>(static_cast<int64_t>(w) / count);
    }
    if constexpr (kOp == Reduction::kNorm) {
      // The sum of squares wraps, like every integer sum, and may thus be negative.
      const T sum = static_cast<T>(w);
      if (std::is_signed_v<T> && sum < 0) {
        return sizeof(T) >= 4 ? std::numeric_limits<T>::min() : T{0};
      }
      return static_cast<T>(std::sqrt(static_cast<double>(sum)));
    }
    if constexpr (kOp == Reduction::kMax || kOp == Reduction::kMin) {
      // Without elements the accumulator still holds the wide type's limit.
      w = std::clamp<Wide>(w, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    }
    return static_cast<T>(w);
  } else if constexpr (std::is_same_v<T, bool>) {
    return w != 0;
  } else {
    if constexpr (kOp == Reduction::kMean) {
      // The sum is rounded to half first, as in TensorFlow, and may overflow.
      if constexpr (std::is_same_v<T, Half>) w = static_cast<float>(T(static_cast<float>(w)));
      w /= static_cast<Wide>(count);
    }
    if constexpr (kOp == Reduction::kNorm) {
      if constexpr (std::is_same_v<T, Half>) w = static_cast<float>(T(static_cast<float>(w)));
      w = std::sqrt(w);
    }
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
      return T(static_cast<float>(w));
    } else {
      return static_cast<T>(w);
    }
  }
}

template <typename T, Reduction kOp, typename Wide>
void StoreReduced(const void* wide, int64_t n, int64_t count, void* to, int64_t begin) {
  const Wide* w = static_cast<const Wide*>(wide);
  T* out = static_cast<T*>(to) + begin;
  for (int64_t i = 0; i < n; ++i) out[i] = FinishReduced<T, kOp>(w[i], count);
}

}  // namespace smelt

#endif  // SMELT_KERNELS_REDUCE_REDUCE_NUMBERS_H_
