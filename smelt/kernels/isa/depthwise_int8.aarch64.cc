#include "smelt/kernels/isa/depthwise_int8.h"

#include <arm_neon.h>

#include <cstring>

#include "smelt/kernels/isa/swish.aarch64.h"

namespace smelt {
namespace {

#define SMELT_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#define SMELT_DOT_INLINE SMELT_DOT __attribute__((always_inline)) inline

// 16 channels, or the first `count` of them.
template <bool kPart>
SMELT_DOT_INLINE int8x16_t LoadPixel(const int8_t* p, int64_t count) {
  if (!kPart) return vld1q_s8(p);
  int8_t bytes[16] = {};
  std::memcpy(bytes, p, static_cast<size_t>(count));
  return vld1q_s8(bytes);
}
template <bool kPart>
SMELT_DOT_INLINE void StorePixel(int8_t* p, int8x16_t v, int64_t count) {
  if (!kPart) return vst1q_s8(p, v);
  int8_t bytes[16];
  vst1q_s8(bytes, v);
  std::memcpy(p, bytes, static_cast<size_t>(count));
}
// Of 4 channels each.
struct Quarters {
  int32x4_t of[4];
};
SMELT_DOT_INLINE int16x8_t Words(int8x16_t v) { return vreinterpretq_s16_s8(v); }
// The bytes of four pixels side by side for each channel.
SMELT_DOT_INLINE Quarters Interleave(int8x16_t a, int8x16_t b, int8x16_t c, int8x16_t d) {
  const int16x8_t low_ab = Words(vzip1q_s8(a, b)), low_cd = Words(vzip1q_s8(c, d));
  const int16x8_t high_ab = Words(vzip2q_s8(a, b)), high_cd = Words(vzip2q_s8(c, d));
  return {vreinterpretq_s32_s16(vzip1q_s16(low_ab, low_cd)),
          vreinterpretq_s32_s16(vzip2q_s16(low_ab, low_cd)),
          vreinterpretq_s32_s16(vzip1q_s16(high_ab, high_cd)),
          vreinterpretq_s32_s16(vzip2q_s16(high_ab, high_cd))};
}
// What becomes of the sums of one result: stores `count` channels.
template <bool kPart>
SMELT_DOT_INLINE void FinishRegister(const DepthwiseInt8Layer& layer, const Quarters& sums,
                                     const Quarters& scales, int8x16_t sign, void* result,
                                     int64_t at, int64_t count) {
  float32x4_t v[4];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    const float32x4_t scale = vreinterpretq_f32_s32(scales.of[q]);
    v[q] = vmulq_f32(vcvtq_f32_s32(sums.of[q]), scale);
    if (layer.swish) v[q] = SwishNeon(v[q]);
  }
  if (layer.swish && !layer.steps.bytes) {
    float* y = static_cast<float*>(result) + at;
    float floats[16];
    for (int q = 0; q < 4; ++q) vst1q_f32((kPart ? floats : y) + q * 4, v[q]);
    if (kPart) std::memcpy(y, floats, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  const SwishInt8Steps& s = layer.steps;
  const float32x4_t factor = vdupq_n_f32(layer.swish ? s.factor : 1.0f);
  const float32x4_t zero = vdupq_n_f32(layer.swish ? s.zero : layer.zero);
  const float32x4_t low = vdupq_n_f32(layer.swish ? s.low : layer.low);
  const float32x4_t high = vdupq_n_f32(layer.swish ? s.high : layer.high);
  const int16x8_t behind = vdupq_n_s16(layer.swish ? int16_t{0} : layer.behind);
  int16x4_t words[4];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    // Of a NaN and a number the number.
    v[q] = vminnmq_f32(vmaxnmq_f32(vfmaq_f32(zero, v[q], factor), low), high);
    words[q] = vqmovn_s32(vcvtnq_s32_f32(v[q]));
  }
  const int16x8_t front = vqaddq_s16(vcombine_s16(words[0], words[1]), behind);
  const int16x8_t back = vqaddq_s16(vcombine_s16(words[2], words[3]), behind);
  const int8x16_t bytes = vcombine_s8(vqmovn_s16(front), vqmovn_s16(back));
  StorePixel<kPart>(static_cast<int8_t*>(result) + at, veorq_s8(bytes, sign), count);
}

// 16 channels from `channel` on for all pairs of a run; kPart: only `count` of them.
template <bool kPart>
SMELT_DOT void RunRegister(const DepthwiseInt8Layer& layer, const DepthwiseInt8Run& run,
                           int64_t channel, int64_t count) {
  const int8_t* weights = layer.weights + channel * layer.groups * 8;
  Quarters start_a, start_b, scales;
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    start_a.of[q] = start_b.of[q] = vld1q_s32(layer.start + channel + q * 4);
    scales.of[q] = vreinterpretq_s32_f32(vld1q_f32(layer.scales + channel + q * 4));
  }
  // The instruction takes signed pixels, so that nothing is added to them: 128 times the weights,
  // which `start` takes off, are given back here.
  const int8x16_t half = vdupq_n_s8(64);
  for (int64_t g = 0; g < layer.groups; ++g) {
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      const int8_t* w = weights + g * 128 + q * 16;
      for (int twice = 0; twice < 2; ++twice) {
        start_a.of[q] = vdotq_s32(start_a.of[q], half, vld1q_s8(w));
        start_b.of[q] = vdotq_s32(start_b.of[q], half, vld1q_s8(w + 64));
      }
    }
  }
  const int8x16_t sign = vdupq_n_s8(-128), none = vdupq_n_s8(0);
  const int8x16_t x_sign = layer.x_unsigned ? sign : none;
  const int8x16_t y_sign = layer.y_unsigned ? sign : none;
  const int8_t* const* end = run.taps + layer.groups * 4;
  int64_t at = channel, y_at = channel;
  for (int64_t i = 0; i < run.pairs; ++i, at += run.tap_step, y_at += run.y_step) {
    Quarters a = start_a, b = start_b;
    const int8_t* w = weights;
    for (const int8_t* const* tap = run.taps; tap != end; tap += 4, w += 128) {
      int8x16_t x[4];
#pragma GCC unroll 4
      for (int t = 0; t < 4; ++t) x[t] = veorq_s8(LoadPixel<kPart>(tap[t] + at, count), x_sign);
      const Quarters pixels = Interleave(x[0], x[1], x[2], x[3]);
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) {
        const int8x16_t bytes = vreinterpretq_s8_s32(pixels.of[q]);
        a.of[q] = vdotq_s32(a.of[q], bytes, vld1q_s8(w + q * 16));
        b.of[q] = vdotq_s32(b.of[q], bytes, vld1q_s8(w + 64 + q * 16));
      }
    }
    FinishRegister<kPart>(layer, a, scales, y_sign, run.y0, y_at, count);
    FinishRegister<kPart>(layer, b, scales, y_sign, run.y1, y_at, count);
  }
}

#undef SMELT_DOT
#undef SMELT_DOT_INLINE

}  // namespace

int64_t DepthwiseInt8Lanes(int64_t) { return 1; }

void RunDepthwiseInt8(const DepthwiseInt8Layer& layer, const DepthwiseInt8Run& run) {
  const int64_t last = run.last_block * kDepthwiseInt8Block;
  const int64_t end = last < layer.channels ? last : layer.channels;
  for (int64_t c = run.first_block * kDepthwiseInt8Block; c < end; c += 16) {
    if (end - c >= 16) {
      RunRegister<false>(layer, run, c, 16);
    } else {
      RunRegister<true>(layer, run, c, end - c);
    }
  }
}

}  // namespace smelt
