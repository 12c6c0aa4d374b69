#include "smelt/base/processor.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace smelt {
namespace {

struct CpuidWords {
  unsigned a = 0, b = 0, c = 0, d = 0;
};
CpuidWords Cpuid(unsigned leaf, unsigned part) {
  CpuidWords w;
  if (__get_cpuid_count(leaf, part, &w.a, &w.b, &w.c, &w.d) == 0) return {};
  return w;
}

// What __builtin_cpu_supports of clang 14 does not know. Asked once: a hypervisor answers in
// microseconds.
bool HasF16c() {
  static const bool has = (Cpuid(1, 0).c & bit_F16C) != 0;
  return has;
}
bool HasFastHalf() {
  static const bool has = [] {
    constexpr unsigned kAmxHalf = 1u << 21, kConvertsWithoutExceptions = 1u << 5;
    const CpuidWords w = Cpuid(7, 1);
    return (w.a & kAmxHalf) != 0 || (w.d & kConvertsWithoutExceptions) != 0;
  }();
  return has;
}

constexpr unsigned kTileBfloat16 = 1u << 22, kTile = 1u << 24, kTileBytes = 1u << 25;
// Linux gives the registers to processes that ask for them.
bool HasTilesOf(unsigned numbers) {
  static const unsigned has = [] {
    const CpuidWords w = Cpuid(7, 0);
    if ((w.d & kTile) == 0) return 0u;
    constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
    return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0 ? w.d : 0u;
  }();
  return (has & numbers) != 0;
}

}  // namespace

bool CpuHas(CpuFeature feature) {
  switch (feature) {
    case CpuFeature::kX86V3:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && HasF16c();
    case CpuFeature::kX86V4:
      return CpuHas(CpuFeature::kX86V3) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vl");
    case CpuFeature::kDotBytes:
      return __builtin_cpu_supports("avx512vnni");
    case CpuFeature::kDotBfloat16:
      return __builtin_cpu_supports("avx512bf16");
    case CpuFeature::kFastHalf:
      return HasFastHalf();
    case CpuFeature::kTilesOfBytes:
      return HasTilesOf(kTileBytes);
    case CpuFeature::kTilesOfBfloat16:
      return HasTilesOf(kTileBfloat16);
  }
  return false;
}

}  // namespace smelt
