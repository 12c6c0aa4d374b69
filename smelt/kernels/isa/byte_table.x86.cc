#include "smelt/kernels/isa/byte_table.h"

#include "smelt/kernels/isa/exact_int8.x86.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/unroll.h"

// Shuffles look up 16 bytes: each of the 16 parts of the table gives its own, and 0 where the
// place, less its begin and with saturation, has bit 7 set.
namespace smelt {
namespace {

void LookUpOneByOne(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = table[x[i]];
}

SMELT_AVX2 void LookUpAvx2(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  const __m256i beyond = _mm256_set1_epi8(0x70);
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i places = Load8(x + i);
    __m256i found = _mm256_setzero_si256();
    SMELT_UNROLL for (int k = 0; k < 16; ++k) {
      const __m256i part = _mm256_broadcastsi128_si256(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k)));
      const __m256i turned = _mm256_xor_si256(places, _mm256_set1_epi8(static_cast<char>(16 * k)));
      found = _mm256_or_si256(found, _mm256_shuffle_epi8(part, _mm256_adds_epu8(turned, beyond)));
    }
    Store8(y + i, found);
  }
  LookUpOneByOne(table, x + i, y + i, n - i);
}

SMELT_AVX512 void LookUpAvx512(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  const __m512i beyond = _mm512_set1_epi8(0x70);
  for (int64_t i = 0; i < n; i += 64) {
    const __mmask64 mask = n - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (n - i)) - 1;
    const __m512i places = _mm512_maskz_loadu_epi8(mask, x + i);
    __m512i found = _mm512_setzero_si512();
    SMELT_UNROLL for (int k = 0; k < 16; ++k) {
      const __m512i part =
          _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k)));
      const __m512i turned = _mm512_xor_si512(places, _mm512_set1_epi8(static_cast<char>(16 * k)));
      found = _mm512_or_si512(found, _mm512_shuffle_epi8(part, _mm512_adds_epu8(turned, beyond)));
    }
    _mm512_mask_storeu_epi8(y + i, mask, found);
  }
}

}  // namespace

void LookUpBytes(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  switch (Isa().level) {
    case IsaLevel::kAvx512:
      return LookUpAvx512(table, x, y, n);
    case IsaLevel::kAvx2:
      return LookUpAvx2(table, x, y, n);
    case IsaLevel::kBaseline:
      return LookUpOneByOne(table, x, y, n);
  }
}

}  // namespace smelt
