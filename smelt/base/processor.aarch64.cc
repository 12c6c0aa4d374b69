#include "smelt/base/processor.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

namespace smelt {

bool CpuHas(CpuFeature feature) {
  switch (feature) {
    case CpuFeature::kDotBytes:
      return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    case CpuFeature::kDotBfloat16:
      return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
    case CpuFeature::kX86V3:
    case CpuFeature::kX86V4:
    case CpuFeature::kFastHalf:
    case CpuFeature::kTilesOfBytes:
    case CpuFeature::kTilesOfBfloat16:
      break;
  }
  return false;
}

}  // namespace smelt
