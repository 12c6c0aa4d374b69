// Columns of floats and of bfloat16 reduced to one row: a few vectors of columns at a time go down
// all rows.
#include "smelt/kernels/isa/columns.h"

#include <cstdint>
#include <utility>

#include "smelt/kernels/isa/loop.inc"
#include "smelt/kernels/isa/vector.inc"
#include "smelt/kernels/isa/vector_narrow.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillColumns(ColumnLoops& t);
namespace {

struct SumColumns {
  template <typename T>
  static inline __attribute__((always_inline)) T Of(T a, T b) {
    return a + b;
  }
};
// NaN wins: it is less or more than nothing.
struct MaxColumns {
  template <typename T>
  static inline __attribute__((always_inline)) T Of(T a, T b) {
    return ((b > a) | (b != b)) ? b : a;
  }
};
struct MinColumns {
  template <typename T>
  static inline __attribute__((always_inline)) T Of(T a, T b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};

// V vectors of columns; U rows side by side, which need not wait for each other.
template <typename Op, int V, int U, typename T>
inline __attribute__((always_inline)) void VectorsOf(const T* x, int64_t step, int64_t rows,
                                                     float* y) {
  Vec all[U][V];
  int64_t r = 1;
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) all[0][v] = LoadVec(x + v * kLanes);
  if (rows >= U) {
#pragma GCC unroll 4
    for (int u = 1; u < U; ++u) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) all[u][v] = LoadVec(x + u * step + v * kLanes);
    }
    for (r = U; r + U <= rows; r += U) {
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u) {
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
          all[u][v] = Op::Of(all[u][v], LoadVec(x + (r + u) * step + v * kLanes));
        }
      }
    }
#pragma GCC unroll 4
    for (int u = 1; u < U; ++u) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) all[0][v] = Op::Of(all[0][v], all[u][v]);
    }
  }
  for (; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      all[0][v] = Op::Of(all[0][v], LoadVec(x + r * step + v * kLanes));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) StoreVec(y + v * kLanes, all[0][v]);
}

template <typename Op, typename T>
void ColumnsOf(const T* x, int64_t step, int64_t rows, int64_t n, float* y) {
  int64_t c = 0;
  for (; c + 4 * kLanes <= n; c += 4 * kLanes) VectorsOf<Op, 4, 2>(x + c, step, rows, y + c);
  for (; c + 2 * kLanes <= n; c += 2 * kLanes) VectorsOf<Op, 2, 4>(x + c, step, rows, y + c);
  for (; c + kLanes <= n; c += kLanes) VectorsOf<Op, 1, 4>(x + c, step, rows, y + c);
  for (; c < n; ++c) {
    float all = LoadOne(x + c);
    for (int64_t r = 1; r < rows; ++r) all = Op::Of(all, LoadOne(x + r * step + c));
    y[c] = all;
  }
}

// Lane l: of a, or of b where l has the bit D, the sum of lanes l and l ^ D.
template <int D, int... L>
inline __attribute__((always_inline)) Vec AddPairs(Vec a, Vec b, std::integer_sequence<int, L...>) {
  constexpr int kN = sizeof...(L);
  return __builtin_shufflevector(a, b, ((L & D) != 0 ? L + kN : L)...) +
         __builtin_shufflevector(a, b, ((L & D) != 0 ? (L ^ D) + kN : L ^ D)...);
}
// Of as many vectors as they have lanes: lane l is the sum of vector l.
template <int D>
inline __attribute__((always_inline)) Vec AddLanes(const Vec* v) {
  using Lanes = std::make_integer_sequence<int, kLanes>;
  if constexpr (D == 0) {
    return *v;
  } else {
    return AddPairs<D>(AddLanes<D / 2>(v), AddLanes<D / 2>(v + D), Lanes());
  }
}

void RowSum(const float* x, int64_t rows, int64_t n, float* y) {
  int64_t r = 0;
  for (; r + kLanes <= rows && n >= kLanes; r += kLanes) {
    Vec sums[kLanes];
    float more[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) {
      const float* row = x + (r + l) * n;
      Vec sum = LoadVec(row);
      int64_t i = kLanes;
      for (; i + kLanes <= n; i += kLanes) sum += LoadVec(row + i);
      float rest = 0;
      for (; i < n; ++i) rest += row[i];
      sums[l] = sum;
      more[l] = rest;
    }
    StoreVec(y + r, AddLanes<kLanes / 2>(sums) + LoadVec(more));
  }
  for (; r < rows; ++r) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[r * n + i];
    y[r] = sum;
  }
}

bool Modest(const float* x, int64_t n) {
  constexpr int32_t kLimit = (127 + 32) << 23;  // the bits of 2^32
  int32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t bits = __builtin_bit_cast(int32_t, x[i]) & 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  return largest <= kLimit;
}

bool NarrowModest(const uint16_t* x, int64_t n) {
  constexpr uint16_t kLimit = (127 + 32) << 7;  // the bits of 2^32
  uint16_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = static_cast<uint16_t>(x[i] & 0x7fff);
    largest = bits > largest ? bits : largest;
  }
  return largest <= kLimit;
}

}  // namespace

void FillColumns(ColumnLoops& t) {
  t.sum = ColumnsOf<SumColumns>;
  t.max = ColumnsOf<MaxColumns>;
  t.min = ColumnsOf<MinColumns>;
  t.narrow_sum = ColumnsOf<SumColumns>;
  t.narrow_max = ColumnsOf<MaxColumns>;
  t.narrow_min = ColumnsOf<MinColumns>;
  t.row_sum = RowSum;
  t.modest = Modest;
  t.narrow_modest = NarrowModest;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
