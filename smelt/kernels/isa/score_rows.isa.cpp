// Rows of a few vectors: what loops over each would load, store and add lane by lane takes longer
// than the exponentials.
#include "smelt/kernels/isa/score_rows.h"

#include <cstdint>

#include "smelt/kernels/isa/vector.inc"
#include "smelt/kernels/isa/vector_exp.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillScores(ScoreLoops& t);
namespace {

// A row's vectors, and what an exponential needs beside them, are in registers.
constexpr int kMostVecs = kVecRegisters == 32 ? 8 : 4;

#define SMELT_FN inline __attribute__((always_inline))

template <typename V>
SMELT_FN V Larger(V a, V b) {
  return a > b ? a : b;
}
template <typename V>
SMELT_FN float LargestOf(V v) {
  const auto half = Larger(LowHalf(v), HighHalf(v));
  if constexpr (kCountOf < V >> 4) {
    return LargestOf(half);
  } else {
    return half[0] > half[1] ? half[0] : half[1];
  }
}
template <typename V>
SMELT_FN float SumOf(V v) {
  const auto half = LowHalf(v) + HighHalf(v);
  if constexpr (kCountOf < V >> 4) {
    return SumOf(half);
  } else {
    return half[0] + half[1];
  }
}

// exp of what is not above 0, 0 where that is not normal; NaN stays.
SMELT_FN Vec ExpOfNegative(Vec x) {
  const ExpParts e = PartsOfExp(x);
  return x < -87.33654f ? Vec{} : (Expm1OfRest(e) + 1.0f) * PowerOf(e);
}

// Rows of V vectors, the last of which has `last` numbers.
template <int V>
void SoftmaxOf(const ScoreRows& s) {
  const int64_t last = s.n - (V - 1) * kLanes;
  IntVec lane = {};
  for (int32_t i = 0; i < kLanes; ++i) lane[i] = i;
  const IntVec inside = lane < IntVec{} + static_cast<int32_t>(last);
  const float* masks[2] = {s.masks[0].numbers, s.masks[1].numbers};
  float* row = s.x;
  for (int64_t r = 0; r < s.rows; ++r, row += s.step) {
    Vec x[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) x[v] = LoadVec(row + v * kLanes) * s.scale;
#pragma GCC unroll 2
    for (int m = 0; m < 2; ++m) {
      if (masks[m] == nullptr) continue;
      if (s.masks[m].column == 0) {
        const Vec all = SplatVec(*masks[m]);
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) x[v] += all;
      } else {
#pragma GCC unroll 8
        for (int v = 0; v + 1 < V; ++v) x[v] += LoadVec(masks[m] + v * kLanes);
        x[V - 1] += LoadFirst(masks[m] + (V - 1) * kLanes, last);
      }
      masks[m] += s.masks[m].row;
    }
    x[V - 1] = inside ? x[V - 1] : Vec{} - __builtin_inff();
    Vec top = x[0];
#pragma GCC unroll 8
    for (int v = 1; v < V; ++v) top = Larger(x[v], top);
    const float m = LargestOf(top);
    Vec sum = {};
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      x[v] = ExpOfNegative(x[v] - m);
      sum += x[v];
    }
    const float part = 1.0f / SumOf(sum);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) StoreVec(row + v * kLanes, x[v] * part);
  }
}

template <int V = 1>
void Softmax(const ScoreRows& s) {
  if constexpr (V < kMostVecs) {
    if (s.n > V * kLanes) return Softmax<V + 1>(s);
  }
  SoftmaxOf<V>(s);
}

}  // namespace

void FillScores(ScoreLoops& t) {
  t.lanes = kLanes;
  t.most = kMostVecs * kLanes;
  t.softmax = Softmax<1>;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
