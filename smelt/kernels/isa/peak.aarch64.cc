#include "smelt/kernels/isa/peak.h"

#include <arm_neon.h>

#include "smelt/base/processor.h"

namespace smelt {
namespace {

// Sixteen sums that do not wait for each other fill four units of four cycles.
constexpr int kPeakSums = 16;

void PeakFma(int64_t passes) {
  float32x4_t sums[kPeakSums], x = vdupq_n_f32(0.5f);
#pragma GCC unroll 16
  for (int i = 0; i < kPeakSums; ++i) sums[i] = vdupq_n_f32(static_cast<float>(i));
  for (int64_t pass = 0; pass < passes; ++pass) {
#pragma GCC unroll 16
    for (float32x4_t& s : sums) s = vfmaq_f32(x, s, x);
  }
#pragma GCC unroll 16
  for (float32x4_t& s : sums) asm volatile("" : : "w"(s));
}

__attribute__((target("arch=armv8.2-a+dotprod"))) void PeakDot8(int64_t passes) {
  int32x4_t sums[kPeakSums];
  int8x16_t x = vdupq_n_s8(1);
#pragma GCC unroll 16
  for (int i = 0; i < kPeakSums; ++i) sums[i] = vdupq_n_s32(i);
  for (int64_t pass = 0; pass < passes; ++pass) {
    asm volatile("" : "+w"(x));
#pragma GCC unroll 16
    for (int32x4_t& s : sums) s = vdotq_s32(s, x, x);
  }
#pragma GCC unroll 16
  for (int32x4_t& s : sums) asm volatile("" : : "w"(s));
}

__attribute__((target("arch=armv8.2-a+bf16"))) void PeakDot16(int64_t passes) {
  float32x4_t sums[kPeakSums];
  bfloat16x8_t x = vreinterpretq_bf16_u16(vdupq_n_u16(0));
#pragma GCC unroll 16
  for (int i = 0; i < kPeakSums; ++i) sums[i] = vdupq_n_f32(static_cast<float>(i));
  for (int64_t pass = 0; pass < passes; ++pass) {
    asm volatile("" : "+w"(x));
#pragma GCC unroll 16
    for (float32x4_t& s : sums) s = vbfdotq_f32(s, x, x);
  }
#pragma GCC unroll 16
  for (float32x4_t& s : sums) asm volatile("" : : "w"(s));
}

}  // namespace

int64_t RunPeak(PeakOp op, int64_t passes) {
  const int64_t steps = passes * kPeakSums;
  switch (op) {
    case PeakOp::kFloat:
      PeakFma(passes);
      return steps * 4 * 2;
    case PeakOp::kInt8:
      if (!CpuHas(CpuFeature::kDotBytes)) return 0;
      PeakDot8(passes);
      return steps * 16 * 2;
    case PeakOp::kBfloat16:
      if (!CpuHas(CpuFeature::kDotBfloat16)) return 0;
      PeakDot16(passes);
      return steps * 8 * 2;
  }
  return 0;
}

uint64_t ReadAll(const void* p, int64_t bytes) {
  const auto* word = static_cast<const uint64_t*>(p);
  const auto* end = word + bytes / 8;
  uint64x2_t s[4] = {vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0)};
  for (; word < end; word += 8) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) s[i] = vorrq_u64(s[i], vld1q_u64(word + 2 * i));
  }
  const uint64x2_t all = vorrq_u64(vorrq_u64(s[0], s[1]), vorrq_u64(s[2], s[3]));
  return vgetq_lane_u64(all, 0) | vgetq_lane_u64(all, 1);
}

}  // namespace smelt
