#include "smelt/kernels/onednn/bfloat16_pays.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>

namespace smelt {

// Both are timed, some microseconds each. The sums stay in registers only where the loops over them
// are unrolled.
#if defined(__clang__)
#define SMELT_SUMS  // Clang unrolls them unasked.
#else
#define SMELT_SUMS _Pragma("GCC unroll 12")
#endif
__attribute__((target("avx512f,avx512bf16"))) bool Bfloat16Pays() {
  constexpr int kSums = 12;
  constexpr int kSteps = 1000;
  const auto time = [](auto step) {
    auto best = std::chrono::steady_clock::duration::max();
    for (int attempt = 0; attempt < 5; ++attempt) {
      const auto start = std::chrono::steady_clock::now();
      step();
      best = std::min(best, std::chrono::steady_clock::now() - start);
    }
    return best;
  };
  const auto products = time([]() __attribute__((target("avx512f,avx512bf16"))) {
    __m512 sums[kSums] = {};
    __m512i x = _mm512_set1_epi32(0x3f803f80);
    for (int i = 0; i < kSteps; ++i) {
      __asm__ volatile("" : "+v"(x));
      SMELT_SUMS for (__m512& s : sums) s = _mm512_dpbf16_ps(s, (__m512bh)x, (__m512bh)x);
    }
    SMELT_SUMS for (__m512& s : sums) __asm__ volatile("" ::"v"(s));
  });
  const auto floats = time([]() __attribute__((target("avx512f,avx512bf16"))) {
    __m512 sums[kSums] = {};
    __m512 x = _mm512_set1_ps(1);
    for (int i = 0; i < kSteps; ++i) {
      __asm__ volatile("" : "+v"(x));
      SMELT_SUMS for (__m512& s : sums) s = _mm512_fmadd_ps(x, x, s);
    }
    SMELT_SUMS for (__m512& s : sums) __asm__ volatile("" ::"v"(s));
  });
  // A step makes two products per lane of bfloat16 and one of float. Processors take 1, 1.5 or 2
  // times as long for it; at 1.5 it is worth the conversions. The bound is where none is, for the
  // answers depend on it.
  return products * 4 < floats * 7;
}
#undef SMELT_SUMS

}  // namespace smelt
