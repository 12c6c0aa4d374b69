// Convolutions with few channels of results: a vector of pixels times a weight for each channel.
#include "smelt/kernels/isa/planar.h"

#include <cstdint>
#include <utility>

#include "smelt/kernels/isa/vector.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillPlanar(PlanarLoops& t);
namespace {

// Sums, a weight of each channel and a vector of pixels fill the registers.
constexpr int MostVectors(int channels) {
  const int fit = (kVecRegisters - 1 - channels) / channels;
  return fit < kPlanarVecs ? fit : kPlanarVecs;
}

template <int C, int V>
void PlanarTileOf(const PlanarTile& t) {
  Vec sums[C][V];
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sums[c][v] = Vec{} + t.bias[c];
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
      for (int64_t k = 0; k < t.taps; ++k, x += t.tap_step, w += C) {
        Vec weights[C];
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) weights[c] = Vec{} + w[c];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) {
          Vec pixels = LoadVec(x + v * kLanes);
          // Loads that are not aligned are what a tile waits for.
          if constexpr (C > 1) KeepVec(&pixels);
#pragma GCC unroll 4
          for (int c = 0; c < C; ++c) sums[c][v] += pixels * weights[c];
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) StoreVec(t.y + (c * V + v) * kLanes, sums[c][v]);
  }
}

template <int C, int... V>
void FillVectors(PlanarLoops& t, std::integer_sequence<int, V...>) {
  t.vectors[C - 1] = MostVectors(C);
  ((t.tile[C - 1][V] = PlanarTileOf<C, V + 1>), ...);
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
template <int D>
inline __attribute__((always_inline)) void TurnSquare(Vec* v) {
  if constexpr (D < kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & D) == 0) TurnPair<D>(&v[i], &v[i + D], std::make_integer_sequence<int, kLanes>());
    }
    TurnSquare<2 * D>(v);
  }
}

void Planes(const float* x, int64_t pixels, int64_t depth, float* y, int64_t pitch) {
  int64_t i = 0;
  for (; i + kLanes <= pixels; i += kLanes) {
    int64_t c = 0;
    for (; c + kLanes <= depth; c += kLanes) {
      Vec square[kLanes];
#pragma GCC unroll 16
      for (int l = 0; l < kLanes; ++l) square[l] = LoadVec(x + (i + l) * depth + c);
      TurnSquare<1>(square);
#pragma GCC unroll 16
      for (int l = 0; l < kLanes; ++l) StoreVec(y + (c + l) * pitch + i, square[l]);
    }
    for (; c < depth; ++c) {
      for (int64_t l = 0; l < kLanes; ++l) y[c * pitch + i + l] = x[(i + l) * depth + c];
    }
  }
  for (; i < pixels; ++i) {
    for (int64_t c = 0; c < depth; ++c) y[c * pitch + i] = x[i * depth + c];
  }
}

}  // namespace

void FillPlanar(PlanarLoops& t) {
  t.lanes = kLanes;
  FillVectors<1>(t, std::make_integer_sequence<int, MostVectors(1)>());
  FillVectors<2>(t, std::make_integer_sequence<int, MostVectors(2)>());
  FillVectors<3>(t, std::make_integer_sequence<int, MostVectors(3)>());
  FillVectors<4>(t, std::make_integer_sequence<int, MostVectors(4)>());
  t.planes = Planes;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
