#include "smelt/kernels/onednn/features.h"

#include <dnnl.h>

#include <cstdlib>
#include <cstring>

#include "smelt/base/processor.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/onednn/bfloat16_pays.h"

namespace smelt {
namespace {

// What `variable` says: "native" or `other`; `found` where it says neither.
bool Decided(const char* variable, const char* other, bool found) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return found;
  if (std::strcmp(value, "native") == 0) return true;
  return std::strcmp(value, other) != 0 && found;
}

}  // namespace

bool Bfloat16IsNative() {
  static const bool native =
      Decided("SMELT_BF16", "float",
              Isa().level == IsaLevel::kAvx512 && CpuHas(CpuFeature::kDotBfloat16) &&
                  (MultipliesTiles() || Bfloat16Pays()));
  return native;
}

// Tiles are so much faster than float that nothing needs to be timed.
bool MultipliesTiles() {
  const unsigned isa = dnnl_get_effective_cpu_isa();
  return (isa & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
}

bool Int8IsNative() {
  static const bool native = Decided(
      "SMELT_INT8", "plain", Isa().level == IsaLevel::kAvx512 && CpuHas(CpuFeature::kDotBytes));
  return native;
}

}  // namespace smelt
