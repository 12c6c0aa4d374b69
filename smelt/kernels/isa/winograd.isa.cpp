// Transforms of Winograd's F(2x2, 3x3): rows of a square first, then its columns.
#include "smelt/kernels/isa/winograd.h"

#include <cstdint>

#include "smelt/kernels/isa/vector.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillWinograd(WinogradLoops& t);
namespace {

constexpr int kSide = 4;  // of the terms

inline __attribute__((always_inline)) void TermsOfFour(Vec a, Vec b, Vec c, Vec d, Vec* to,
                                                       int step) {
  to[0] = a - c;
  to[step] = b + c;
  to[2 * step] = c - b;
  to[3 * step] = b - d;
}

void OfPixels(const float* const* pixels, int64_t channels, float* v, int64_t step) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    Vec rows[kSide * kSide];
#pragma GCC unroll 4
    for (int j = 0; j < kSide; ++j) {
      TermsOfFour(LoadVec(pixels[j] + c), LoadVec(pixels[kSide + j] + c),
                  LoadVec(pixels[2 * kSide + j] + c), LoadVec(pixels[3 * kSide + j] + c), rows + j,
                  kSide);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kSide; ++i) {
      const Vec* r = rows + i * kSide;
      Vec terms[kSide];
      TermsOfFour(r[0], r[1], r[2], r[3], terms, 1);
#pragma GCC unroll 4
      for (int j = 0; j < kSide; ++j) StoreVec(v + (i * kSide + j) * step + c, terms[j]);
    }
  }
}

inline __attribute__((always_inline)) void TermsOfThree(Vec a, Vec b, Vec c, Vec* to, int step) {
  const Vec ends = a + c;
  to[0] = a;
  to[step] = (ends + b) * 0.5f;
  to[2 * step] = (ends - b) * 0.5f;
  to[3 * step] = c;
}

void OfTaps(const float* const* taps, const float* factors, int64_t channels, float* u,
            int64_t step) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    Vec rows[kSide * 3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      TermsOfThree(LoadVec(taps[j] + c), LoadVec(taps[3 + j] + c), LoadVec(taps[6 + j] + c),
                   rows + j, 3);
    }
    const Vec factor = factors == nullptr ? SplatVec(1.0f) : LoadVec(factors + c);
#pragma GCC unroll 4
    for (int i = 0; i < kSide; ++i) {
      Vec terms[kSide];
      TermsOfThree(rows[i * 3], rows[i * 3 + 1], rows[i * 3 + 2], terms, 1);
#pragma GCC unroll 4
      for (int j = 0; j < kSide; ++j) StoreVec(u + (i * kSide + j) * step + c, terms[j] * factor);
    }
  }
}

void ToPixels(const WinogradTile& t) {
  const Vec low = SplatVec(t.low), high = SplatVec(t.high);
  for (int64_t c = 0; c < t.channels; c += kLanes) {
    Vec rows[2 * kSide];
#pragma GCC unroll 4
    for (int j = 0; j < kSide; ++j) {
      const float* m = t.terms + j * t.step + c;
      const Vec b = LoadVec(m + kSide * t.step), d = LoadVec(m + 2 * kSide * t.step);
      rows[j] = LoadVec(m) + b + d;
      rows[kSide + j] = b - d - LoadVec(m + 3 * kSide * t.step);
    }
    const Vec bias = LoadVec(t.bias + c);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const Vec* r = rows + i * kSide;
      const Vec sums[2] = {r[0] + r[1] + r[2] + bias, r[1] - r[2] - r[3] + bias};
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        const int p = i * 2 + j;
        if (t.y[p] == nullptr) continue;
        Vec sum = sums[j];
        if (t.addend[p] != nullptr) sum += LoadVec(t.addend[p] + c);
        if (t.clamps) {
          sum = low > sum ? low : sum;
          sum = high < sum ? high : sum;
        }
        StoreVec(t.y[p] + c, sum);
      }
    }
  }
}

}  // namespace

void FillWinograd(WinogradLoops& t) {
  t.lanes = kLanes;
  t.of_pixels = OfPixels;
  t.of_taps = OfTaps;
  t.to_pixels = ToPixels;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
