#include "smelt/kernels/isa/features.h"

#include <cstdlib>
#include <cstring>

#include "smelt/kernels/isa/isa.h"

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
              Isa().level == IsaLevel::kAvx512 && __builtin_cpu_supports("avx512bf16"));
  return native;
}

bool Int8IsNative() {
  static const bool native =
      Decided("SMELT_INT8", "plain",
              Isa().level == IsaLevel::kAvx512 && __builtin_cpu_supports("avx512vnni"));
  return native;
}

}  // namespace smelt
