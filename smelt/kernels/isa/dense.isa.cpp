// y = act(x * w + bias) for few rows: what a library call costs would exceed the work.
#include <cstdint>
#include <utility>

#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/loop.inc"
#include "smelt/kernels/isa/vector.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillDense(IsaTable& t);
namespace {

// Four rows of a panel at once: sums, a panel's vectors of weights and a value fill the 16
// registers; of 32, values of each row have some, too.
constexpr int kPanelVecs = kVecRegisters == 32 ? 4 : 3;
constexpr int64_t kPanel = kPanelVecs * kLanes;
constexpr int kTileRows = 4;
// The same with two vectors each, where registers are left for more values.
constexpr int kTallRows = kVecRegisters == 32 ? 2 * kTileRows : kTileRows;

// Floats; more come from farther than the second cache, one stream at a time.
constexpr int64_t kNearWeights = int64_t{1} << 17;
// Floats; more are not in the nearest cache when they are read again.
constexpr int64_t kNearestWeights = int64_t{1} << 13;
// Rows of weights that tiles of several rows ask for ahead: high ones read some vectors of each, a
// step that processors do not foresee. One row is read as fast as the second cache gives.
constexpr int kRowsAhead = 16;

// The first `count` floats of p, zeros after them.
inline Vec LoadPart(const float* p, int64_t count) {
  float lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = i < count ? p[i] : 0.0f;
  return LoadVec(lanes);
}
inline void StorePart(float* p, Vec v, int64_t count) {
  float lanes[kLanes];
  StoreVec(lanes, v);
  for (int64_t i = 0; i < kLanes; ++i) {
    if (i < count) p[i] = lanes[i];
  }
}

// What the sums of a row begin with: `step` floats behind those of the row before. nullptr: zeros.
struct Start {
  const float* sums;
  int64_t step;
};

inline const float* Behind(const float* p, int64_t by) { return p == nullptr ? p : p + by; }

// M rows by V vectors, of which `columns` are stored; `addend`, rows as far apart as those of y, is
// added last. U sums run side by side: one row alone would
// wait for each addition. From row full_k on, reading whole vectors of w would leave the matrix.
// Of more than one panel, weights of the next lie `apart` floats behind. kAhead: see kRowsAhead.
template <int M, int V, int U, bool kAhead = false>
inline __attribute__((always_inline)) void Tile(const float* x, int64_t ldx, int64_t k,
                                                const float* w, int64_t ldw, int64_t full_k,
                                                Start start, const float* addend, float* y,
                                                int64_t ldy, int64_t columns,
                                                int64_t apart = kPanel) {
  const auto weights = [&](const float* row, int v) __attribute__((always_inline)) {
    return row + v / kPanelVecs * apart + v % kPanelVecs * kLanes;
  };
  Vec acc[U][M][V];
  for (int u = 0; u < U; ++u) {
    for (int m = 0; m < M; ++m) {
      for (int v = 0; v < V; ++v) acc[u][m][v] = Vec{};
    }
  }
  if (start.sums != nullptr) {
    for (int v = 0; v < V; ++v) {
      const int64_t left = columns - v * kLanes;
      for (int m = 0; m < M; ++m) {
        const float* from = start.sums + m * start.step + v * kLanes;
        // The next panel's sums come from wherever the values lie that are added.
        if (kAhead) __builtin_prefetch(from + kPanel);
        acc[0][m][v] = left >= kLanes ? LoadVec(from) : LoadPart(from, left > 0 ? left : 0);
      }
    }
  }
  int64_t i = 0;
#pragma GCC unroll 2
  for (; i + U <= full_k; i += U) {
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u) {
      const float* row = w + (i + u) * ldw;
      Vec b[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        b[v] = LoadVec(weights(row, v));
        if (kAhead) __builtin_prefetch(weights(row + kRowsAhead * ldw, v));
      }
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        const float value = x[m * ldx + i + u];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) acc[u][m][v] += b[v] * value;
      }
    }
  }
  for (; i < full_k; ++i) {
    const float* row = w + i * ldw;
    for (int v = 0; v < V; ++v) {
      const Vec b = LoadVec(weights(row, v));
      for (int m = 0; m < M; ++m) acc[0][m][v] += b * x[m * ldx + i];
    }
  }
  for (; i < k; ++i) {
    const float* row = w + i * ldw;
    for (int v = 0; v < V; ++v) {
      const int64_t left = columns - v * kLanes;
      const Vec b = LoadPart(weights(row, v), left < kLanes ? (left > 0 ? left : 0) : kLanes);
      for (int m = 0; m < M; ++m) acc[0][m][v] += b * x[m * ldx + i];
    }
  }
  for (int m = 0; m < M; ++m) {
    for (int v = 0; v < V; ++v) {
      Vec sum = acc[0][m][v];
      for (int u = 1; u < U; ++u) sum += acc[u][m][v];
      const int64_t left = columns - v * kLanes;
      float* out = y + m * ldy + v * kLanes;
      if (addend != nullptr) {
        const float* last = addend + m * ldy + v * kLanes;
        sum += left >= kLanes ? LoadVec(last) : LoadPart(last, left > 0 ? left : 0);
      }
      if (left >= kLanes) {
        StoreVec(out, sum);
      } else if (left > 0) {
        StorePart(out, sum, left);
      }
    }
  }
}

// M rows by V vectors, two vectors after the other where more would not leave a register for each
// sum: weights come at half the pace of the sums, as the caches that are not the nearest give them.
template <int M, int V, bool kFar>
inline __attribute__((always_inline)) void Rows(const float* x, int64_t ldx, int64_t k,
                                                const float* w, int64_t ldw, int64_t full_k,
                                                Start start, const float* addend, float* y,
                                                int64_t ldy, int64_t columns) {
  constexpr int kVecs = M > kTileRows && V > 2 ? 2 : V;
  // So many sums hide how long an addition takes. From four rows on they are added in one order.
  constexpr int kSums = (M < 4 ? M : 4) * kVecs;
  constexpr int kUnrolled = (8 + kSums - 1) / kSums;
  for (int v = 0; v < V; v += kVecs) {
    const int64_t from = v * kLanes;
    const Start sums = {start.sums == nullptr ? nullptr : start.sums + from, start.step};
    // Without rows there need not be a matrix.
    Tile<M, kVecs, kUnrolled, kFar && (M > 1)>(x, ldx, k, k > 0 ? w + from : w, ldw, full_k, sums,
                                               Behind(addend, from), y + from, ldy, columns - from);
  }
}

// All rows of one panel of V vectors. kFar: the weights are not in the nearest cache.
template <int V, bool kFar = false>
void Panel(const float* x, int64_t ldx, int64_t m, int64_t k, const float* w, int64_t ldw,
           int64_t full_k, Start start, const float* addend, float* y, int64_t ldy,
           int64_t columns) {
  static_assert(V <= 2 || V == kPanelVecs);
  // As few tiles as there can be, of as even heights: a low one is slower than its share.
  const int64_t tiles = (m + kTallRows - 1) / kTallRows;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t r = m * t / tiles, height = m * (t + 1) / tiles - r;
    const auto rows = [&]<int M>() __attribute__((always_inline)) {
      const Start sums = {start.sums == nullptr ? nullptr : start.sums + r * start.step,
                          start.step};
      Rows<M, V, kFar>(x + r * ldx, ldx, k, w, ldw, full_k, sums, Behind(addend, r * ldy),
                       y + r * ldy, ldy, columns);
    };
    [&]<int... M>(std::integer_sequence<int, M...>) {
      ((height == M + 1 ? rows.template operator()<M + 1>() : void()), ...);
    }
    (std::make_integer_sequence<int, kTallRows>());
  }
}

void Activate(float* y, int64_t ldy, int64_t m, int64_t n, UnaryF32 act, float alpha) {
  if (act == UnaryF32::kIdentity) return;
  if (act == UnaryF32::kRelu) {
    for (int64_t r = 0; r < m; ++r) {
      float* row = y + r * ldy;
      SMELT_LOOP
      for (int64_t i = 0; i < n; ++i) row[i] = row[i] <= 0.0f ? 0.0f : row[i];
    }
    return;
  }
  const IsaUnaryFn f = Isa().unary[static_cast<int>(act)];
  for (int64_t r = 0; r < m; ++r) f(y + r * ldy, y + r * ldy, n, alpha);
}

// One row by whole vectors of columns. Every weight is read once, so that how fast they come
// decides: few rows of w at a time from front to back, while the sums wait in the nearest cache.
// kFar: they are no nearer than in the second cache.
template <bool kFar>
void DenseRow(const float* x, int64_t k, const float* w, int64_t ldw, int64_t columns,
              const float* bias, float* y) {
  constexpr int64_t kBlock = 2048;  // 8 KiB of sums
  constexpr int kRows = 4;
  for (int64_t from = 0; from < columns; from += kBlock) {
    const int64_t to = from + kBlock < columns ? from + kBlock : columns;
    int64_t i = 0;
    for (; i + kRows <= k; i += kRows) {
      const float* row = w + i * ldw;
      SMELT_LOOP
      for (int64_t j = from; j < to; j += kLanes) {
        Vec sum = i > 0 ? LoadVec(y + j) : bias != nullptr ? LoadVec(bias + j) : Vec{};
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          sum += LoadVec(row + r * ldw + j) * x[i + r];
          // Those that are read next: what fetches ahead by itself stops where a page ends.
          if (kFar) __builtin_prefetch(row + (kRows + r) * ldw + j);
        }
        StoreVec(y + j, sum);
      }
    }
    for (; i < k; ++i) {
      for (int64_t j = from; j < to; j += kLanes) {
        const Vec sum = i > 0 ? LoadVec(y + j) : bias != nullptr ? LoadVec(bias + j) : Vec{};
        StoreVec(y + j, sum + LoadVec(w + i * ldw + j) * x[i]);
      }
    }
  }
}

void Dense(const float* x, int64_t ldx, int64_t m, int64_t k, const float* w, int64_t ldw,
           int64_t n, const float* bias, UnaryF32 act, float alpha, float* y, int64_t ldy) {
  int64_t j = 0;
  if (m == 1 && k > 0) {
    j = n - n % kLanes;
    if (k * j > kNearWeights) {
      DenseRow<true>(x, k, w, ldw, j, bias, y);
    } else {
      DenseRow<false>(x, k, w, ldw, j, bias, y);
    }
  }
  for (; j + kPanel <= n; j += kPanel) {
    Panel<kPanelVecs>(x, ldx, m, k, w + j, ldw, k, {Behind(bias, j), 0}, nullptr, y + j, ldy,
                      kPanel);
  }
  for (; j < n; j += kLanes) {
    const int64_t columns = n - j < kLanes ? n - j : kLanes;
    int64_t full_k = k;
    if (columns < kLanes) {
      // The last rows whose vector would end behind the matrix's last element, at (k-1) ldw + n.
      full_k = 0;
      if (ldw > 0) {
        const int64_t room = (k - 1) * ldw + n - (j + kLanes);
        full_k = room < 0 ? 0 : room / ldw + 1;
        full_k = full_k > k ? k : full_k;
      }
    }
    Panel<1>(x, ldx, m, k, w + j, ldw, full_k, {Behind(bias, j), 0}, nullptr, y + j, ldy, columns);
  }
  Activate(y, ldy, m, n, act, alpha);
}

void DensePack(const float* w, int64_t ldw, int64_t k, int64_t n, float* packed) {
  for (int64_t j = 0; j < n; j += kPanel) {
    const int64_t columns = n - j < kPanel ? n - j : kPanel;
    for (int64_t i = 0; i < k; ++i, packed += kPanel) {
      const float* row = w + i * ldw + j;
      if (columns == kPanel) {
        for (int v = 0; v < kPanelVecs; ++v) {
          StoreVec(packed + v * kLanes, LoadVec(row + v * kLanes));
        }
        continue;
      }
      for (int64_t c = 0; c < kPanel; ++c) packed[c] = c < columns ? row[c] : 0.0f;
    }
  }
}

typedef float Quad __attribute__((vector_size(16)));
inline __attribute__((always_inline)) Quad LoadQuad(const float* p) {
  Quad q;
  __builtin_memcpy(&q, p, sizeof(q));
  return q;
}
inline __attribute__((always_inline)) void StoreQuad(float* p, Quad q) {
  __builtin_memcpy(p, &q, sizeof(q));
}

// y[i][c] = x[c][i] for i and c below 4.
inline __attribute__((always_inline)) void TurnQuad(const float* x, int64_t ldx, float* y,
                                                    int64_t ldy) {
  const Quad a = LoadQuad(x), b = LoadQuad(x + ldx);
  const Quad c = LoadQuad(x + 2 * ldx), d = LoadQuad(x + 3 * ldx);
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  StoreQuad(y, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  StoreQuad(y + ldy, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  StoreQuad(y + 2 * ldy, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  StoreQuad(y + 3 * ldy, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

void DensePackTurned(const float* turned, int64_t ldw, int64_t k, int64_t n, float* packed) {
  for (int64_t j = 0; j < n; j += kPanel, packed += k * kPanel) {
    const int64_t columns = n - j < kPanel ? n - j : kPanel;
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4) {
      const float* x = turned + (j + c) * ldw;
      int64_t i = 0;
      for (; i + 4 <= k; i += 4) TurnQuad(x + i, ldw, packed + i * kPanel + c, kPanel);
      for (; i < k; ++i) {
        for (int64_t l = 0; l < 4; ++l) packed[i * kPanel + c + l] = x[l * ldw + i];
      }
    }
    for (; c < kPanel; ++c) {
      for (int64_t i = 0; i < k; ++i) {
        packed[i * kPanel + c] = c < columns ? turned[(j + c) * ldw + i] : 0.0f;
      }
    }
  }
}

void DensePacked(const float* x, int64_t ldx, int64_t m, int64_t k, const float* packed, int64_t n,
                 const float* bias, const float* addend, UnaryF32 act, float alpha, float* y,
                 int64_t ldy) {
  // Rows that take several tiles go by while a part of a panel's weights is in the nearest cache.
  constexpr int64_t kNear = (int64_t{16} << 10) / (kPanel * int64_t{sizeof(float)});
  const int64_t most = m > kTallRows && k > 2 * kNear ? kNear : k;
  int64_t j = 0;
  if (m == 1 && k * n <= kNearWeights) {
    // Two panels, or with 32 registers one: as many sums as hide how long an addition takes.
    constexpr int kPanels = kVecRegisters == 32 ? 1 : 2, kSums = 2;
    for (; j + kPanels * kPanel <= n; j += kPanels * kPanel) {
      Tile<1, kPanels * kPanelVecs, kSums>(x, 0, k, packed + j * k, kPanel, k, {Behind(bias, j), 0},
                                           Behind(addend, j), y + j, 0, kPanels * kPanel,
                                           k * kPanel);
    }
  }
  for (; j < n; j += kPanel) {
    const int64_t columns = n - j < kPanel ? n - j : kPanel;
    const int64_t vectors = (columns + kLanes - 1) / kLanes;
    int64_t done = 0;
    do {
      const int64_t part = k - done < most ? k - done : most;
      const float* w = packed + j * k + done * kPanel;
      const Start start = done > 0 ? Start{y + j, ldy} : Start{Behind(bias, j), 0};
      const float* last = done + part < k ? nullptr : Behind(addend, j);
      if (vectors == 1) {
        Panel<1>(x + done, ldx, m, part, w, kPanel, part, start, last, y + j, ldy, columns);
      } else if (vectors == 2) {
        Panel<2>(x + done, ldx, m, part, w, kPanel, part, start, last, y + j, ldy, columns);
      } else if (k * n > kNearestWeights) {
        Panel<kPanelVecs, true>(x + done, ldx, m, part, w, kPanel, part, start, last, y + j, ldy,
                                columns);
      } else {
        Panel<kPanelVecs>(x + done, ldx, m, part, w, kPanel, part, start, last, y + j, ldy,
                          columns);
      }
      done += part;
    } while (done < k);
  }
  Activate(y, ldy, m, n, act, alpha);
}

}  // namespace

void FillDense(IsaTable& t) {
  t.dense = Dense;
  t.dense_panel = kPanel;
  t.dense_pack = DensePack;
  t.dense_pack_turned = DensePackTurned;
  t.dense_packed = DensePacked;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
