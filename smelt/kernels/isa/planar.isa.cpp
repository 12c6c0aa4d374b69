// Convolutions with few channels of results: a vector of pixels times a weight for each channel.
#include "smelt/kernels/isa/planar.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "smelt/kernels/isa/vector.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillPlanar(PlanarLoops& t);
namespace {

// Of many channels a weight at a time is held, and the pixels all: more of the registers are sums.
constexpr bool HoldsPixels(int channels) { return channels > 4; }

// Sums, and either a weight of each channel and a vector of pixels or the other way, fill the
// registers.
constexpr int MostVectors(int channels) {
  const int fit = HoldsPixels(channels) ? (kVecRegisters - 1) / (channels + 1)
                                        : (kVecRegisters - 1 - channels) / channels;
  return fit < kPlanarVecs ? fit : kPlanarVecs;
}

template <int C, int V>
inline __attribute__((always_inline)) void AddTap(const float* x, const float* w,
                                                  Vec (&sums)[C][V]) {
  if constexpr (HoldsPixels(C)) {
    Vec pixels[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) pixels[v] = LoadVec(x + v * kLanes);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) KeepVec(&pixels[v]);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const Vec weight = SplatVec(w[c]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sums[c][v] += pixels[v] * weight;
    }
    return;
  }
  Vec weights[C];
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) weights[c] = SplatVec(w[c]);
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    Vec pixels = LoadVec(x + v * kLanes);
    // Loads that are not aligned are what a tile waits for.
    if constexpr (C > 1) KeepVec(&pixels);
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sums[c][v] += pixels * weights[c];
  }
}

template <int C, int V>
void PlanarTileOf(const PlanarTile& t) {
  Vec sums[C][V];
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sums[c][v] = SplatVec(t.bias[c]);
  }
  const float* w = t.weights;
  for (int64_t r = 0; r < t.tap_rows; ++r) {
    const float* plane = t.lines[r];
    if (plane == nullptr) {
      w += t.depth * t.taps * C;
      continue;
    }
    for (int64_t d = 0; d < t.depth; ++d, plane += t.pitch) {
      const float* x = plane;
      for (int64_t k = 0; k < t.taps; ++k, x += t.tap_step, w += C) AddTap(x, w, sums);
    }
  }
  const Vec low = SplatVec(t.low), high = SplatVec(t.high);
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const Vec value = sums[c][v] < low ? low : sums[c][v];  // NaN stays
      StoreVec(t.y + (c * V + v) * kLanes, value > high ? high : value);
    }
  }
}

template <int C, int... V>
void FillVectors(PlanarLoops& t, std::integer_sequence<int, V...>) {
  t.vectors[C - 1] = MostVectors(C);
  ((t.tile[C - 1][V] = PlanarTileOf<C, V + 1>), ...);
}

template <int... C>
void FillChannels(PlanarLoops& t, std::integer_sequence<int, C...>) {
  (FillVectors<C + 1>(t, std::make_integer_sequence<int, MostVectors(C + 1)>()), ...);
}

// Lanes of a and b change places where bit D of the lane's number says so: of both, the lanes
// without the bit come to `a`.
template <int D, int... L>
inline __attribute__((always_inline)) void TurnPair(Vec* a, Vec* b,
                                                    std::integer_sequence<int, L...>) {
  constexpr int kN = sizeof...(L);
  const Vec low = __builtin_shufflevector(*a, *b, ((L & D) != 0 ? (L ^ D) + kN : L)...);
  const Vec high = __builtin_shufflevector(*a, *b, ((L & D) != 0 ? L + kN : L ^ D)...);
  *a = low;
  *b = high;
}
// Lanes of G rows by the bits below G: row r holds in lane g * G + q what row q held in g * G + r.
template <int G, int D = 1>
inline __attribute__((always_inline)) void TurnRows(Vec* v) {
  if constexpr (D < G) {
#pragma GCC unroll 16
    for (int i = 0; i < G; ++i) {
      if ((i & D) == 0) TurnPair<D>(&v[i], &v[i + D], std::make_integer_sequence<int, kLanes>());
    }
    TurnRows<G, 2 * D>(v);
  }
}

// G floats of each of as many rows as fill kCount, `step` floats apart.
template <int G, int kCount = kLanes>
inline __attribute__((always_inline)) Floats<kCount> LoadRows(const float* x, int64_t step) {
  if constexpr (kCount == G) {
    return LoadFloats<Floats<G>>(x);
  } else {
    return JoinHalves(LoadRows<G, kCount / 2>(x, step),
                      LoadRows<G, kCount / 2>(x + kCount / 2 / G * step, step));
  }
}
// Pixels of C floats each, in their order: of G floats that are written what is no channel's is
// overwritten by the next.
template <int C, int G, int kPart = 0>
inline __attribute__((always_inline)) void StorePixels(float* y, const Vec* rows) {
  if constexpr (kPart < kLanes / G) {
#pragma GCC unroll 8
    for (int q = 0; q < G; ++q) {
      const auto pixel = TakeLanes<kPart * G>(rows[q], std::make_integer_sequence<int64_t, G>());
      __builtin_memcpy(y + (kPart * G + q) * C, &pixel, sizeof(pixel));
    }
    StorePixels<C, G, kPart + 1>(y, rows);
  }
}

// Channels [c, c + count), at most G, of a vector of pixels. G floats of each are read.
template <int G>
inline __attribute__((always_inline)) void TurnToPlanes(const float* x, int64_t depth, int64_t c,
                                                        int64_t count, float* y, int64_t pitch) {
  Vec rows[G];
#pragma GCC unroll 16
  for (int q = 0; q < G; ++q) rows[q] = LoadRows<G>(x + q * depth + c, G * depth);
  TurnRows<G>(rows);
#pragma GCC unroll 16
  for (int q = 0; q < G; ++q) {
    if (q < count) StoreVec(y + (c + q) * pitch, rows[q]);
  }
}

void Planes(const float* x, int64_t pixels, int64_t depth, float* y, int64_t pitch) {
  if (depth == 1) {
    __builtin_memcpy(y, x, static_cast<std::size_t>(pixels) * sizeof(float));
    return;
  }
  int64_t i = 0;
  for (; i + kLanes <= pixels; i += kLanes) {
    const float* from = x + i * depth;
    int64_t c = 0;
    for (; c + kLanes <= depth; c += kLanes) {
      TurnToPlanes<kLanes>(from, depth, c, kLanes, y + i, pitch);
    }
    // More of a pixel may be read than it has where another follows.
    const int64_t end = i + kLanes < pixels ? depth : depth / 4 * 4;
    while (c < end) {
      const int64_t left = end - c;
      if constexpr (kLanes > 8) {
        if (left > 4) {
          TurnToPlanes<8>(from, depth, c, left, y + i, pitch);
          c += 8;
          continue;
        }
      }
      TurnToPlanes<4>(from, depth, c, left, y + i, pitch);
      c += 4;
    }
    for (; c < depth; ++c) {
      for (int64_t l = 0; l < kLanes; ++l) y[c * pitch + i + l] = from[l * depth + c];
    }
  }
  for (; i < pixels; ++i) {
    for (int64_t c = 0; c < depth; ++c) y[c * pitch + i] = x[i * depth + c];
  }
}

template <int C>
void Pixels(const float* planes, int64_t pitch, int64_t pixels, float* y, int64_t step) {
  int64_t p = 0;
  if constexpr (C == 1) {
    if (step == 1) {
      __builtin_memcpy(y, planes, static_cast<std::size_t>(pixels) * sizeof(float));
      return;
    }
  }
  constexpr int kGroup = C > 4 ? 8 : 4;
  if constexpr (C > 1 && kLanes >= kGroup) {
    // What is written of more than a pixel's channels is the next one's, where there is one.
    const int64_t end = C == kGroup ? pixels : pixels - 1;
    for (; step == C && p + kLanes <= end; p += kLanes) {
      Vec rows[kGroup];
#pragma GCC unroll 8
      for (int c = 0; c < kGroup; ++c) rows[c] = c < C ? LoadVec(planes + c * pitch + p) : Vec{};
      TurnRows<kGroup>(rows);
      StorePixels<C, kGroup>(y + p * C, rows);
    }
  }
  for (; p < pixels; ++p) {
    for (int c = 0; c < C; ++c) y[p * step + c] = planes[c * pitch + p];
  }
}

template <int... C>
void FillPixels(PlanarLoops& t, std::integer_sequence<int, C...>) {
  ((t.pixels[C] = Pixels<C + 1>), ...);
}

}  // namespace

void FillPlanar(PlanarLoops& t) {
  t.lanes = kLanes;
  t.channels = kLanes / 2 < 4 ? 4 : kLanes / 2;
  FillChannels(t, std::make_integer_sequence<int, kPlanarChannels>());
  t.planes = Planes;
  FillPixels(t, std::make_integer_sequence<int, kPlanarChannels>());
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
