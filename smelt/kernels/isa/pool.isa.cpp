// Maxima over windows whose pixels' channels lie side by side.
#include <cstdint>

#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/isa/vector.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillPool(ConvLoops& t);
namespace {

// Of V vectors of channels. NaN is not greater than anything.
template <int V>
inline __attribute__((always_inline)) void Maxima(const float* const* taps, int64_t count,
                                                  int64_t at, float* y) {
  Vec most[V];
  for (int v = 0; v < V; ++v) most[v] = Vec{} - __FLT_MAX__;
  for (int64_t t = 0; t < count; ++t) {
    const float* x = taps[t] + at;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Vec value = LoadVec(x + v * kLanes);
      most[v] = value > most[v] ? value : most[v];
    }
  }
  for (int v = 0; v < V; ++v) StoreVec(y + v * kLanes, most[v]);
}

void MaxPool(const float* const* taps, int64_t count, int64_t pixels, int64_t step, int64_t depth,
             float* y) {
  constexpr int kVecs = 4;
  for (int64_t p = 0; p < pixels; ++p, y += depth) {
    const int64_t from = p * step;
    int64_t c = 0;
    for (; c + kVecs * kLanes <= depth; c += kVecs * kLanes) {
      Maxima<kVecs>(taps, count, from + c, y + c);
    }
    for (; c + kLanes <= depth; c += kLanes) Maxima<1>(taps, count, from + c, y + c);
    // Some channels twice.
    if (c < depth) Maxima<1>(taps, count, from + depth - kLanes, y + depth - kLanes);
  }
}

}  // namespace

void FillPool(ConvLoops& t) { t.max_pool = MaxPool; }

}  // namespace smelt::SMELT_ISA_NAMESPACE
