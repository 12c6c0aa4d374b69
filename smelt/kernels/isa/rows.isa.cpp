// Reductions and normalizations of one row of floats.
#include <cstdint>

#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/loop.inc"
#include "smelt/kernels/isa/vector.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillRows(IsaTable& t);
namespace {

#include "smelt/kernels/isa/vector_math.inc"

// Adds the lanes, and by `step` what is left of the row from i on, in pieces of half as many floats
// each time.
template <typename V, typename Step, typename Tail>
SMELT_FN float Finish(V a, int64_t i, int64_t n, Step step, Tail tail) {
  auto half = LowHalf(a) + HighHalf(a);
  constexpr int64_t kHalf = kCountOf<V> / 2;
  if (i + kHalf <= n) {
    half = step(half, i);
    i += kHalf;
  }
  if constexpr (kHalf > 2) {
    return Finish(half, i, n, step, tail);
  } else {
    const float s = half[0] + half[1];
    return i < n ? tail(s, i) : s;
  }
}

// Four accumulators hide the latency of an addition.
template <typename Step, typename Tail>
SMELT_FN float Accumulate(int64_t n, Step step, Tail tail) {
  Vec a = {}, b = {}, c = {}, d = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = step(a, i);
    b = step(b, i + kLanes);
    c = step(c, i + 2 * kLanes);
    d = step(d, i + 3 * kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) a = step(a, i);
  return Finish((a + b) + (c + d), i, n, step, tail);
}

template <typename V>
SMELT_FN V At(const float* x, const V& /*like*/) {
  return LoadFloats<V>(x);
}

float Sum(const float* x, int64_t n) {
  return Accumulate(
      n, [&](auto v, int64_t i) { return v + At(x + i, v); },
      [&](float s, int64_t i) { return s + x[i]; });
}
float Dot(const float* x, const float* y, int64_t n) {
  return Accumulate(
      n, [&](auto v, int64_t i) { return v + At(x + i, v) * At(y + i, v); },
      [&](float s, int64_t i) { return s + x[i] * y[i]; });
}
float SumSquares(const float* x, int64_t n, float center) {
  return Accumulate(
      n,
      [&](auto v, int64_t i) {
        const auto d = At(x + i, v) - center;
        return v + d * d;
      },
      [&](float s, int64_t i) { return s + (x[i] - center) * (x[i] - center); });
}

// Of two vectors, lane by lane; a NaN of either stays.
template <bool kMax, typename V>
inline __attribute__((always_inline)) V Extremer(V a, V b) {
  return ((kMax ? a > b : a < b) | (a != a)) ? a : b;
}
template <bool kMax, typename V>
inline __attribute__((always_inline)) float ExtremeLane(V v) {
  if constexpr (kCountOf < V >> 4) {
    return ExtremeLane<kMax>(Extremer<kMax>(LowHalf(v), HighHalf(v)));
  } else {
    float best = v[0];
    for (int64_t l = 1; l < kCountOf<V>; ++l) {
      best = best != best || (kMax ? best > v[l] : best < v[l]) ? best : v[l];
    }
    return best;
  }
}

// A comparison with NaN is false, so NaN is looked for apart.
template <bool kMax>
float Extreme(const float* x, int64_t n) {
  float best = kMax ? -__builtin_inff() : __builtin_inff();
  int64_t i = 0;
  if (n >= kLanes) {
    Vec m = LoadVec(x);
    // Lanes where a NaN was seen.
    IntVec nan = m != m;
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      const Vec v = LoadVec(x + i);
      nan |= v != v;
      m = kMax ? (v > m ? v : m) : (v < m ? v : m);
    }
    best = ExtremeLane<kMax>(nan != 0 ? SplatVec(__builtin_nanf("")) : m);
    if (best != best) return best;
  }
  for (; i < n; ++i) {
    if (x[i] != x[i]) return x[i];
    best = kMax ? (x[i] > best ? x[i] : best) : (x[i] < best ? x[i] : best);
  }
  return best;
}

void Softmax(const float* x, float* y, int64_t n) {
  const float m = Extreme<true>(x, n);
  SMELT_LOOP
  for (int64_t i = 0; i < n; ++i) y[i] = Exp(x[i] - m);
  const float scale = 1.0f / Sum(y, n);
  SMELT_LOOP
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] * scale;
}

void MaskedSoftmax(float* x, float scale, const float* mask, int64_t mask_step, int64_t n) {
  if (mask == nullptr) {
    SMELT_LOOP
    for (int64_t i = 0; i < n; ++i) x[i] = x[i] * scale;
  } else if (mask_step == 0) {
    const float shift = *mask;
    SMELT_LOOP
    for (int64_t i = 0; i < n; ++i) x[i] = x[i] * scale + shift;
  } else {
    SMELT_LOOP
    for (int64_t i = 0; i < n; ++i) x[i] = x[i] * scale + mask[i];
  }
  Softmax(x, x, n);
}

// Rows shorter than a vector are joined, so that their exponentials fill whole vectors.
void SoftmaxRows(const float* x, float* y, int64_t rows, int64_t n) {
  if (n >= kLanes) {
    for (int64_t r = 0; r < rows; ++r) Softmax(x + r * n, y + r * n, n);
    return;
  }
  constexpr int64_t kBlock = 1024;
  const int64_t block = n > 0 ? kBlock / n : 0;
  for (int64_t begin = 0; block > 0 && begin < rows; begin += block) {
    const int64_t count = rows - begin < block ? rows - begin : block;
    const float* a = x + begin * n;
    float* b = y + begin * n;
    for (int64_t r = 0; r < count; ++r) {
      const float m = Extreme<true>(a + r * n, n);
      for (int64_t i = r * n; i < (r + 1) * n; ++i) b[i] = a[i] - m;
    }
    SMELT_LOOP
    for (int64_t i = 0; i < count * n; ++i) b[i] = Exp(b[i]);
    for (int64_t r = 0; r < count; ++r) {
      float sum = 0;
      for (int64_t i = r * n; i < (r + 1) * n; ++i) sum += b[i];
      const float scale = 1.0f / sum;
      for (int64_t i = r * n; i < (r + 1) * n; ++i) b[i] = b[i] * scale;
    }
  }
}

void LogSoftmax(const float* x, float* y, int64_t n) {
  const float m = Extreme<true>(x, n);
  constexpr int64_t kBlock = 256;
  float block[kBlock];
  float sum = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    SMELT_LOOP
    for (int64_t i = 0; i < count; ++i) block[i] = Exp(x[begin + i] - m);
    sum += Sum(block, count);
  }
  const float shift = Log(sum);
  SMELT_LOOP
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) - shift;
}

void LayerNorm(const float* x, const float* scale, const float* shift, float epsilon, float* y,
               int64_t n) {
  if (n <= 0) return;
  const float mean = Sum(x, n) / static_cast<float>(n);
  const float variance = SumSquares(x, n, mean) / static_cast<float>(n);
  const float r = 1.0f / __builtin_sqrtf(variance + epsilon);
  if (scale != nullptr && shift != nullptr) {
    SMELT_LOOP
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * r * scale[i] + shift[i];
    return;
  }
  SMELT_LOOP
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * r;
  if (scale != nullptr) {
    SMELT_LOOP
    for (int64_t i = 0; i < n; ++i) y[i] = y[i] * scale[i];
  }
  if (shift != nullptr) {
    SMELT_LOOP
    for (int64_t i = 0; i < n; ++i) y[i] = y[i] + shift[i];
  }
}

void AffineNorm(const float* x, const float* scale, const float* shift, float epsilon, float* y,
                int64_t n) {
  if (n <= 0) return;
  const float mean = Sum(x, n) / static_cast<float>(n);
  const float variance = SumSquares(x, n, mean) / static_cast<float>(n);
  const float r = 1.0f / __builtin_sqrtf(variance + epsilon);
  const auto run = [&](auto factor, auto offset) {
    SMELT_LOOP
    for (int64_t i = 0; i < n; ++i) {
      const float f = factor(i);
      y[i] = x[i] * f + (offset(i) - mean * f);
    }
  };
  const auto scaled = [&](int64_t i) { return r * scale[i]; };
  const auto plain = [&](int64_t) { return r; };
  const auto shifted = [&](int64_t i) { return shift[i]; };
  // Minus zero, of which a number less another is the negative of that.
  const auto centered = [](int64_t) { return -0.0f; };
  if (scale != nullptr) {
    shift != nullptr ? run(scaled, shifted) : run(scaled, centered);
  } else {
    shift != nullptr ? run(plain, shifted) : run(plain, centered);
  }
}

}  // namespace

void FillRows(IsaTable& t) {
  t.sum = Sum;
  t.max = Extreme<true>;
  t.min = Extreme<false>;
  t.dot = Dot;
  t.sum_squares = SumSquares;
  t.softmax = Softmax;
  t.softmax_rows = SoftmaxRows;
  t.masked_softmax = MaskedSoftmax;
  t.log_softmax = LogSoftmax;
  t.layer_norm = LayerNorm;
  t.affine_norm = AffineNorm;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
