// Maxima over windows whose pixels' channels lie side by side.
#include <cstdint>

#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/isa/vector.inc"
#include "smelt/kernels/isa/vector_narrow.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillPool(ConvLoops& t);
namespace {

// NaN is not greater than anything.
struct Largest {
  Vec most = Vec{} - __FLT_MAX__;
  inline __attribute__((always_inline)) void Add(Vec value) { most = value > most ? value : most; }
};

// Channels that one load brings.
template <typename T>
constexpr int64_t kPiece = kVecBytes / static_cast<int64_t>(sizeof(T));

// Images come from far caches, their lines in too short pieces to be fetched ahead unasked.
template <typename T>
inline __attribute__((always_inline)) void FetchAhead(const T* x) {
  __builtin_prefetch(reinterpret_cast<const char*>(x) + 2048);
}

// Of V pieces of channels.
template <int V>
inline __attribute__((always_inline)) void Maxima(const float* const* taps, int64_t count,
                                                  int64_t at, float* y) {
  Largest of[V];
  for (int64_t t = 0; t < count; ++t) {
    const float* x = taps[t] + at;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      FetchAhead(x + v * kLanes);
      of[v].Add(LoadVec(x + v * kLanes));
    }
  }
  for (int v = 0; v < V; ++v) StoreVec(y + v * kLanes, of[v].most);
}

template <int V>
inline __attribute__((always_inline)) void Maxima(const uint16_t* const* taps, int64_t count,
                                                  int64_t at, uint16_t* y) {
  constexpr uint32_t kHigh = 0xffff0000u;
  Largest even[V], odd[V];
  for (int64_t t = 0; t < count; ++t) {
    const uint16_t* x = taps[t] + at;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      FetchAhead(x + v * kPiece<uint16_t>);
      const WordVec pairs = LoadWords(x + v * kPiece<uint16_t>);
      even[v].Add(reinterpret_cast<Vec>(pairs << 16));
      odd[v].Add(reinterpret_cast<Vec>(pairs & kHigh));
    }
  }
  for (int v = 0; v < V; ++v) {
    StoreWords(y + v * kPiece<uint16_t>, (reinterpret_cast<WordVec>(even[v].most) >> 16) |
                                             (reinterpret_cast<WordVec>(odd[v].most) & kHigh));
  }
}

template <typename T>
void MaxPool(const T* const* taps, int64_t count, int64_t pixels, int64_t step, int64_t depth,
             T* y) {
  // Four vectors of maxima.
  constexpr int kMost = static_cast<int>(4 * kLanes / kPiece<T>);
  constexpr int64_t kOne = kPiece<T>, kAll = kMost * kOne;
  for (int64_t p = 0; p < pixels; ++p, y += depth) {
    const int64_t from = p * step;
    int64_t c = 0;
    for (; c + kAll <= depth; c += kAll) Maxima<kMost>(taps, count, from + c, y + c);
    for (; c + kOne <= depth; c += kOne) Maxima<1>(taps, count, from + c, y + c);
    // Some channels twice.
    if (c < depth) Maxima<1>(taps, count, from + depth - kOne, y + depth - kOne);
  }
}

}  // namespace

void FillPool(ConvLoops& t) {
  t.max_pool = MaxPool<float>;
  t.narrow_max_pool = MaxPool<uint16_t>;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
