#include "smelt/kernels/isa/isa.h"

#include <cpuid.h>

#include <cstdlib>
#include <cstring>

namespace smelt {

#define SMELT_ISA_COPY(ns)           \
  namespace ns {                     \
  void FillElementwise(IsaTable& t); \
  void FillMath(IsaTable& t);        \
  void FillRows(IsaTable& t);        \
  void FillDense(IsaTable& t);       \
  }
SMELT_ISA_COPY(isa_sse2)
SMELT_ISA_COPY(isa_avx2)
SMELT_ISA_COPY(isa_avx512)
#undef SMELT_ISA_COPY

namespace {

constexpr const char* kIsaNames[kNumIsaLevels] = {"sse2", "avx2", "avx512"};

struct IsaTables {
  IsaTable tables[kNumIsaLevels] = {};
  IsaTables() {
#define SMELT_ISA_FILL(i, ns)     \
  tables[i].level = IsaLevel{i};  \
  tables[i].name = kIsaNames[i];  \
  ns::FillElementwise(tables[i]); \
  ns::FillMath(tables[i]);        \
  ns::FillRows(tables[i]);        \
  ns::FillDense(tables[i])
    SMELT_ISA_FILL(0, isa_sse2);
    // Filling runs code of that set, so only where the processor has it.
    if (IsaSupported(IsaLevel::kAvx2)) {
      SMELT_ISA_FILL(1, isa_avx2);
    }
    if (IsaSupported(IsaLevel::kAvx512)) {
      SMELT_ISA_FILL(2, isa_avx512);
    }
#undef SMELT_ISA_FILL
  }
};

const IsaTable* ChooseIsa() {
  const char* wanted = std::getenv("SMELT_ISA");
  int limit = kNumIsaLevels - 1;
  for (int i = 0; wanted != nullptr && i < kNumIsaLevels; ++i) {
    if (std::strcmp(wanted, kIsaNames[i]) == 0) limit = i;
  }
  for (int i = limit; i > 0; --i) {
    if (const IsaTable* t = IsaOf(IsaLevel{static_cast<uint8_t>(i)})) return t;
  }
  return IsaOf(IsaLevel::kBaseline);
}

// clang 14's __builtin_cpu_supports does not know it. Asked once: a hypervisor answers in
// microseconds.
bool HasF16c() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }();
  return has;
}

}  // namespace

bool IsaSupported(IsaLevel level) {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && HasF16c();
  switch (level) {
    case IsaLevel::kBaseline:
      return true;
    case IsaLevel::kAvx2:
      return avx2;
    case IsaLevel::kAvx512:
      return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") &&
             __builtin_cpu_supports("avx512vl");
  }
  return false;
}

const IsaTable* IsaOf(IsaLevel level) {
  static const auto* tables = new IsaTables;
  return IsaSupported(level) ? &tables->tables[static_cast<int>(level)] : nullptr;
}

const IsaTable& Isa() {
  static const IsaTable* chosen = ChooseIsa();
  return *chosen;
}

}  // namespace smelt
