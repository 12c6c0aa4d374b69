// Tiles of a convolution: a few pixels of the result by a few vectors of channels, whose sums stay
// in registers while the window's values and weights go by.
#include "smelt/kernels/isa/conv.h"

#include <cstdint>

#include "smelt/kernels/isa/vector.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillConv(ConvLoops& t);
namespace {

// With three vectors of weights and a value, sums fill the 32 or 16 registers; with fewer vectors,
// sums of more pixels fill the 16.
constexpr int kTilePixels = kVecRegisters == 32 ? 8 : 4;
constexpr int kNarrowTilePixels = kVecRegisters == 32 ? 8 : 6;
constexpr int kTileVecs = 3;
// How many rows of weights ahead the next cache is asked for them: a panel goes by once for each
// tile.
constexpr int64_t kTileAhead = 24;
// How many steps of a run are followed by fetches of what comes next where steps have none.
constexpr int64_t kStepsPerFetch = 16;

// The first `count` floats, fewer than a vector, by powers of two.
inline __attribute__((always_inline)) void StoreSome(float* p, Vec v, int64_t count) {
  float lanes[kLanes];
  StoreVec(lanes, v);
  const float* from = lanes;
  if constexpr (kLanes > 8) {
    if ((count & 8) != 0) {
      __builtin_memcpy(p, from, 32);
      p += 8, from += 8;
    }
  }
  if constexpr (kLanes > 4) {
    if ((count & 4) != 0) {
      __builtin_memcpy(p, from, 16);
      p += 4, from += 4;
    }
  }
  for (int64_t i = 0; i < (count & 3); ++i) p[i] = from[i];
}
inline __attribute__((always_inline)) Vec LoadSome(const float* p, int64_t count) {
  float lanes[kLanes];
  StoreVec(lanes, Vec{});
  for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
  return LoadVec(lanes);
}

// Few pixels have several sums of each: one alone would wait for each addition.
template <int P>
constexpr int kSums = P == 1   ? 4
                      : P == 2 ? 2
                               : 1;

template <int P, int V>
void TileOf(const ConvTile& t) {
  constexpr int U = kSums<P>;
  // Fewer pixels take no longer than their weights do, and where values and weights of a step come
  // for few sums, fetches take the places of loads.
  constexpr bool kFetches = P >= 4 && kVecRegisters == 32;
  // What is added and written lies in short runs, which no processor foresees.
  if (t.fetches) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        if (t.addend != nullptr) __builtin_prefetch(t.addend + t.places[p] + v * kLanes);
        if (t.addend != t.y) __builtin_prefetch(t.y + t.places[p] + v * kLanes, 1);
      }
    }
  }
  Vec sums[U][P][V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const Vec bias = LoadVec(t.bias + v * kLanes);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      sums[0][p][v] = bias;
#pragma GCC unroll 4
      for (int u = 1; u < U; ++u) sums[u][p][v] = Vec{};
    }
  }
  const float* w = t.weights;
  const float* const* pixels = t.pixels;
  const char* ahead =
      static_cast<const char*>(t.ahead != nullptr || !kFetches ? t.ahead : t.weights);
  const auto step = [&](const float* const* x, int64_t i, const float* row, Vec(*to)[V])
      __attribute__((always_inline)) {
    Vec weight[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      weight[v] = LoadVec(row + v * kLanes);
      if (kFetches) __builtin_prefetch(row + (kTileAhead * V + v) * kLanes);
    }
    if (kFetches) {
      __builtin_prefetch(ahead, 0, 2);
      ahead += t.ahead_step;
    }
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      const float value = x[p][i];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) to[p][v] += weight[v] * value;
    }
  };
  for (int64_t run = 0; run < t.runs; ++run, pixels += P) {
    if (pixels[0] == nullptr) {
      w += t.run * V * kLanes;
      continue;
    }
    const float* x[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) x[p] = pixels[p];
    int64_t i = 0;
    if constexpr (U > 1) {
      for (; i + U <= t.run; i += U, w += U * V * kLanes) {
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) step(x, i + u, w + u * V * kLanes, sums[u]);
      }
    }
    while (i < t.run) {
      int64_t end = t.run;
      if (!kFetches && ahead != nullptr) {
        end = i + kStepsPerFetch < end ? i + kStepsPerFetch : end;
        const char* fetched = ahead + (end - i) * t.ahead_step;
        for (; ahead < fetched; ahead += 64) __builtin_prefetch(ahead, 0, 2);
        ahead = fetched;
      }
      for (; i < end; ++i, w += V * kLanes) step(x, i, w, sums[0]);
    }
  }
  Vec(*sum)[V] = sums[0];
#pragma GCC unroll 4
  for (int u = 1; u < U; ++u) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[p][v] += sums[u][p][v];
    }
  }
  const int64_t last = t.columns - (V - 1) * kLanes;
  if (t.addend != nullptr) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      const float* more = t.addend + t.places[p];
#pragma GCC unroll 4
      for (int v = 0; v + 1 < V; ++v) sum[p][v] += LoadVec(more + v * kLanes);
      more += (V - 1) * kLanes;
      sum[p][V - 1] += last == kLanes ? LoadVec(more) : LoadSome(more, last);
    }
  }
  // NaN stays: a comparison with it is false.
  if (t.clamps) {
    const Vec low = SplatVec(t.low), high = SplatVec(t.high);
    // Of short sums a second comparison is a part.
    const bool bounded = t.high < __builtin_inff();
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[p][v] = low > sum[p][v] ? low : sum[p][v];
    }
#pragma GCC unroll 8
    for (int p = 0; bounded && p < P; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[p][v] = high < sum[p][v] ? high : sum[p][v];
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    float* y = t.y + t.places[p];
#pragma GCC unroll 4
    for (int v = 0; v + 1 < V; ++v) StoreVec(y + v * kLanes, sum[p][v]);
    y += (V - 1) * kLanes;
    if (last == kLanes) {
      StoreVec(y, sum[p][V - 1]);
    } else {
      StoreSome(y, sum[p][V - 1], last);
    }
  }
}

template <int P>
void FillTiles(ConvLoops& t) {
  t.tile[P - 1][0] = TileOf<P, 1>;
  t.tile[P - 1][1] = TileOf<P, 2>;
  if constexpr (P <= kTilePixels) t.tile[P - 1][2] = TileOf<P, 3>;
  if constexpr (P > 1) FillTiles<P - 1>(t);
}

}  // namespace

void FillConv(ConvLoops& t) {
  static_assert(kTilePixels <= kNarrowTilePixels && kNarrowTilePixels <= kConvTilePixels);
  static_assert(kTileVecs == kConvTileVecs);
  t.lanes = kLanes;
  t.tile_pixels[0] = t.tile_pixels[1] = kNarrowTilePixels;
  t.tile_pixels[2] = kTilePixels;
  FillTiles<kNarrowTilePixels>(t);
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
