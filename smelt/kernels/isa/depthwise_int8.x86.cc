#include "smelt/kernels/isa/depthwise_int8.h"

#include <immintrin.h>

#include "smelt/kernels/isa/swish.x86.h"
namespace smelt {
namespace {

// The sums stay in registers only where the loops over them are unrolled.
#if defined(__clang__)
#define SMELT_FOUR  // Clang unrolls them unasked.
#else
#define SMELT_FOUR _Pragma("GCC unroll 4")
#endif

#define SMELT_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))
#define SMELT_VNNI_INLINE SMELT_VNNI __attribute__((always_inline)) inline

// Registers of 64 channels, or of 32 for a short end. Bytes of a lane of 16 channels stay in their
// lane: quarter q of a block has channels 4q to 4q + 3 of each lane.
struct Zmm {
  using Ints = __m512i;
  using Floats = __m512;
  static constexpr int kLanes = 4;
  SMELT_VNNI_INLINE static Ints Load(const void* p) { return _mm512_loadu_si512(p); }
  SMELT_VNNI_INLINE static Ints LoadPart(uint64_t mask, const void* p) {
    return _mm512_maskz_loadu_epi8(mask, p);
  }
  SMELT_VNNI_INLINE static void StorePart(uint64_t mask, void* p, Ints v) {
    _mm512_mask_storeu_epi8(p, mask, v);
  }
  SMELT_VNNI_INLINE static void Store(void* p, Ints v) { _mm512_storeu_si512(p, v); }
  SMELT_VNNI_INLINE static Floats LoadFloats(const float* p) { return _mm512_loadu_ps(p); }
  SMELT_VNNI_INLINE static Ints AllBytes(int v) { return _mm512_set1_epi8(static_cast<char>(v)); }
  SMELT_VNNI_INLINE static Ints Flip(Ints v, Ints bits) { return _mm512_xor_si512(v, bits); }
  SMELT_VNNI_INLINE static Ints Low8(Ints a, Ints b) { return _mm512_unpacklo_epi8(a, b); }
  SMELT_VNNI_INLINE static Ints High8(Ints a, Ints b) { return _mm512_unpackhi_epi8(a, b); }
  SMELT_VNNI_INLINE static Ints Low16(Ints a, Ints b) { return _mm512_unpacklo_epi16(a, b); }
  SMELT_VNNI_INLINE static Ints High16(Ints a, Ints b) { return _mm512_unpackhi_epi16(a, b); }
  SMELT_VNNI_INLINE static Ints Dot(Ints sum, Ints x, Ints w) {
    return _mm512_dpbusd_epi32(sum, x, w);
  }
  SMELT_VNNI_INLINE static Ints Round(Ints sum, Floats scale, Floats zero, Floats low,
                                      Floats high) {
    const Floats v = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale), zero);
    return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(v, low), high));
  }
  // rint(min(v, high)): a NaN becomes the least integer.
  SMELT_VNNI_INLINE static Ints RoundBelow(Floats v, Floats high) {
    return _mm512_cvtps_epi32(_mm512_min_ps(high, v));
  }
  SMELT_VNNI_INLINE static Floats Swish(Ints sum, Floats scale) {
    return SwishAvx512(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale));
  }
  SMELT_VNNI_INLINE static Floats Linear(Floats v, Floats factor, Floats zero) {
    return _mm512_fmadd_ps(v, factor, zero);
  }
  SMELT_VNNI_INLINE static Ints AtLeast(Ints bytes, Ints low) {
    return _mm512_max_epi8(bytes, low);
  }
  // Quarters as channels in order.
  SMELT_VNNI_INLINE static void StoreFloats(uint64_t mask, float* y, const Floats (&v)[4]) {
    const Floats front01 = _mm512_shuffle_f32x4(v[0], v[1], 0x44);
    const Floats front23 = _mm512_shuffle_f32x4(v[2], v[3], 0x44);
    const Floats back01 = _mm512_shuffle_f32x4(v[0], v[1], 0xee);
    const Floats back23 = _mm512_shuffle_f32x4(v[2], v[3], 0xee);
    const auto part = [mask](int i) { return static_cast<__mmask16>(mask >> (16 * i)); };
    _mm512_mask_storeu_ps(y, part(0), _mm512_shuffle_f32x4(front01, front23, 0x88));
    _mm512_mask_storeu_ps(y + 16, part(1), _mm512_shuffle_f32x4(front01, front23, 0xdd));
    _mm512_mask_storeu_ps(y + 32, part(2), _mm512_shuffle_f32x4(back01, back23, 0x88));
    _mm512_mask_storeu_ps(y + 48, part(3), _mm512_shuffle_f32x4(back01, back23, 0xdd));
  }
  SMELT_VNNI_INLINE static Floats All(float v) { return _mm512_set1_ps(v); }
  SMELT_VNNI_INLINE static Ints AllWords(int16_t v) { return _mm512_set1_epi16(v); }
  SMELT_VNNI_INLINE static Ints Narrow(const Ints (&v)[4], Ints behind) {
    return _mm512_packs_epi16(_mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), behind),
                              _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), behind));
  }
};

struct Ymm {
  using Ints = __m256i;
  using Floats = __m256;
  static constexpr int kLanes = 2;
  SMELT_VNNI_INLINE static Ints Load(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  SMELT_VNNI_INLINE static Ints LoadPart(uint64_t mask, const void* p) {
    return _mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask), p);
  }
  SMELT_VNNI_INLINE static void StorePart(uint64_t mask, void* p, Ints v) {
    _mm256_mask_storeu_epi8(p, static_cast<__mmask32>(mask), v);
  }
  SMELT_VNNI_INLINE static void Store(void* p, Ints v) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), v);
  }
  SMELT_VNNI_INLINE static Floats LoadFloats(const float* p) { return _mm256_loadu_ps(p); }
  SMELT_VNNI_INLINE static Ints AllBytes(int v) { return _mm256_set1_epi8(static_cast<char>(v)); }
  SMELT_VNNI_INLINE static Ints Flip(Ints v, Ints bits) { return _mm256_xor_si256(v, bits); }
  SMELT_VNNI_INLINE static Ints Low8(Ints a, Ints b) { return _mm256_unpacklo_epi8(a, b); }
  SMELT_VNNI_INLINE static Ints High8(Ints a, Ints b) { return _mm256_unpackhi_epi8(a, b); }
  SMELT_VNNI_INLINE static Ints Low16(Ints a, Ints b) { return _mm256_unpacklo_epi16(a, b); }
  SMELT_VNNI_INLINE static Ints High16(Ints a, Ints b) { return _mm256_unpackhi_epi16(a, b); }
  SMELT_VNNI_INLINE static Ints Dot(Ints sum, Ints x, Ints w) {
    return _mm256_dpbusd_epi32(sum, x, w);
  }
  SMELT_VNNI_INLINE static Ints Round(Ints sum, Floats scale, Floats zero, Floats low,
                                      Floats high) {
    const Floats v = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale), zero);
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v, low), high));
  }
  SMELT_VNNI_INLINE static Ints RoundBelow(Floats v, Floats high) {
    return _mm256_cvtps_epi32(_mm256_min_ps(high, v));
  }
  SMELT_VNNI_INLINE static Floats Swish(Ints sum, Floats scale) {
    const Floats v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale);
    return _mm512_castps512_ps256(SwishAvx512(_mm512_zextps256_ps512(v)));
  }
  SMELT_VNNI_INLINE static Floats Linear(Floats v, Floats factor, Floats zero) {
    return _mm256_fmadd_ps(v, factor, zero);
  }
  SMELT_VNNI_INLINE static Ints AtLeast(Ints bytes, Ints low) {
    return _mm256_max_epi8(bytes, low);
  }
  SMELT_VNNI_INLINE static void StoreFloats(uint64_t mask, float* y, const Floats (&v)[4]) {
    const auto part = [mask](int i) { return static_cast<__mmask8>(mask >> (8 * i)); };
    _mm256_mask_storeu_ps(y, part(0), _mm256_permute2f128_ps(v[0], v[1], 0x20));
    _mm256_mask_storeu_ps(y + 8, part(1), _mm256_permute2f128_ps(v[2], v[3], 0x20));
    _mm256_mask_storeu_ps(y + 16, part(2), _mm256_permute2f128_ps(v[0], v[1], 0x31));
    _mm256_mask_storeu_ps(y + 24, part(3), _mm256_permute2f128_ps(v[2], v[3], 0x31));
  }
  SMELT_VNNI_INLINE static Floats All(float v) { return _mm256_set1_ps(v); }
  SMELT_VNNI_INLINE static Ints AllWords(int16_t v) { return _mm256_set1_epi16(v); }
  SMELT_VNNI_INLINE static Ints Narrow(const Ints (&v)[4], Ints behind) {
    return _mm256_packs_epi16(_mm256_adds_epi16(_mm256_packs_epi32(v[0], v[1]), behind),
                              _mm256_adds_epi16(_mm256_packs_epi32(v[2], v[3]), behind));
  }
};

enum class DepthwiseResult : uint8_t { kRounded, kSwishRounded, kSwishFloats };

// What becomes of the sums of one result. `mask`: its channels.
template <typename V, bool kPart, DepthwiseResult kResult>
SMELT_VNNI_INLINE void Finish(const DepthwiseInt8Layer& layer, uint64_t mask,
                              const typename V::Floats (&scales)[4], typename V::Ints (&sum)[4],
                              void* result, int64_t at) {
  if (kResult == DepthwiseResult::kSwishFloats) {
    typename V::Floats v[4];
    SMELT_FOUR for (int q = 0; q < 4; ++q) v[q] = V::Swish(sum[q], scales[q]);
    V::StoreFloats(mask, static_cast<float*>(result) + at, v);
    return;
  }
  typename V::Ints bytes;
  if (kResult == DepthwiseResult::kSwishRounded) {
    const SwishInt8Steps& s = layer.steps;
    const auto factor = V::All(s.factor), zero = V::All(s.zero), high = V::All(s.high);
    SMELT_FOUR for (int q = 0; q < 4; ++q) {
      sum[q] = V::RoundBelow(V::Linear(V::Swish(sum[q], scales[q]), factor, zero), high);
    }
    bytes = V::AtLeast(V::Narrow(sum, V::AllWords(0)), V::AllBytes(static_cast<int>(s.low)));
  } else {
    const auto zero = V::All(layer.zero), low = V::All(layer.low), high = V::All(layer.high);
    SMELT_FOUR for (int q = 0; q < 4; ++q) sum[q] = V::Round(sum[q], scales[q], zero, low, high);
    bytes = V::Narrow(sum, V::AllWords(layer.behind));
  }
  bytes = V::Flip(bytes, V::AllBytes(layer.y_unsigned ? 128 : 0));
  int8_t* y = static_cast<int8_t*>(result) + at;
  if (kPart) {
    V::StorePart(mask, y, bytes);
  } else {
    V::Store(y, bytes);
  }
}

// One block of channels for all pairs of a run. kPart: only the channels of `mask`.
template <typename V, bool kPart, DepthwiseResult kResult>
SMELT_VNNI void RunBlock(const DepthwiseInt8Layer& layer, const DepthwiseInt8Run& run,
                         int64_t block, uint64_t mask) {
  using Ints = typename V::Ints;
  constexpr int kQuarter = V::kLanes * 4;
  const int64_t channel = block * kDepthwiseInt8Block;
  const int8_t* weights = layer.weights + channel * layer.groups * 8;
  Ints start[4];
  typename V::Floats scales[4];
  SMELT_FOUR for (int q = 0; q < 4; ++q) {
    start[q] = V::Load(layer.start + channel + q * kQuarter);
    scales[q] = V::LoadFloats(layer.scales + channel + q * kQuarter);
  }
  const Ints x_sign = V::AllBytes(layer.x_unsigned ? 0 : 128);
  const int8_t* const* end = run.taps + layer.groups * 4;
  int64_t at = channel, y_at = channel;
  for (int64_t i = 0; i < run.pairs; ++i) {
    Ints a[4] = {start[0], start[1], start[2], start[3]};
    Ints b[4] = {start[0], start[1], start[2], start[3]};
    const int8_t* w = weights;
    for (const int8_t* const* tap = run.taps; tap != end; tap += 4, w += 32 * kQuarter) {
      Ints x[4];
      SMELT_FOUR for (int t = 0; t < 4; ++t) {
        x[t] = V::Flip(kPart ? V::LoadPart(mask, tap[t] + at) : V::Load(tap[t] + at), x_sign);
      }
      const Ints low01 = V::Low8(x[0], x[1]), low23 = V::Low8(x[2], x[3]);
      const Ints high01 = V::High8(x[0], x[1]), high23 = V::High8(x[2], x[3]);
      const Ints quarter[4] = {V::Low16(low01, low23), V::High16(low01, low23),
                               V::Low16(high01, high23), V::High16(high01, high23)};
      SMELT_FOUR for (int q = 0; q < 4; ++q) {
        a[q] = V::Dot(a[q], quarter[q], V::Load(w + q * 4 * kQuarter));
        b[q] = V::Dot(b[q], quarter[q], V::Load(w + (4 + q) * 4 * kQuarter));
      }
    }
    Finish<V, kPart, kResult>(layer, mask, scales, a, run.y0, y_at);
    Finish<V, kPart, kResult>(layer, mask, scales, b, run.y1, y_at);
    at += run.tap_step;
    y_at += run.y_step;
  }
}

template <DepthwiseResult kResult>
void RunBlocks(const DepthwiseInt8Layer& layer, const DepthwiseInt8Run& run) {
  for (int64_t block = run.first_block; block < run.last_block; ++block) {
    const int64_t left = layer.channels - block * kDepthwiseInt8Block;
    if (left >= 64) {
      RunBlock<Zmm, false, kResult>(layer, run, block, ~uint64_t{0});
    } else if (left > 32) {
      RunBlock<Zmm, true, kResult>(layer, run, block, (uint64_t{1} << left) - 1);
    } else if (left == 32) {
      RunBlock<Ymm, false, kResult>(layer, run, block, (uint64_t{1} << 32) - 1);
    } else {
      RunBlock<Ymm, true, kResult>(layer, run, block, (uint64_t{1} << left) - 1);
    }
  }
}

#undef SMELT_FOUR
#undef SMELT_VNNI
#undef SMELT_VNNI_INLINE

}  // namespace

int64_t DepthwiseInt8Lanes(int64_t left) { return left > 32 ? Zmm::kLanes : Ymm::kLanes; }

void RunDepthwiseInt8(const DepthwiseInt8Layer& layer, const DepthwiseInt8Run& run) {
  if (!layer.swish) {
    RunBlocks<DepthwiseResult::kRounded>(layer, run);
  } else if (layer.steps.bytes) {
    RunBlocks<DepthwiseResult::kSwishRounded>(layer, run);
  } else {
    RunBlocks<DepthwiseResult::kSwishFloats>(layer, run);
  }
}

}  // namespace smelt
