#include "smelt/kernels/isa/isa.h"

#include <cpuid.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

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

// Only the sets that are asked for are filled: their code lies far apart.
template <IsaLevel kLevel>
const IsaTable* Filled(void (*elementwise)(IsaTable&), void (*math)(IsaTable&),
                       void (*rows)(IsaTable&), void (*dense)(IsaTable&)) {
  static const IsaTable* table = [&] {
    auto* t = new IsaTable{};
    t->level = kLevel;
    t->name = kIsaNames[static_cast<int>(kLevel)];
    for (const auto fill : {elementwise, math, rows, dense}) fill(*t);
    return t;
  }();
  return table;
}

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
  // Filling runs code of that set, so only where the processor has it.
  if (!IsaSupported(level)) return nullptr;
#define SMELT_ISA_FILLED(level, ns) \
  Filled<level>(ns::FillElementwise, ns::FillMath, ns::FillRows, ns::FillDense)
  switch (level) {
    case IsaLevel::kBaseline:
      return SMELT_ISA_FILLED(IsaLevel::kBaseline, isa_sse2);
    case IsaLevel::kAvx2:
      return SMELT_ISA_FILLED(IsaLevel::kAvx2, isa_avx2);
    case IsaLevel::kAvx512:
      return SMELT_ISA_FILLED(IsaLevel::kAvx512, isa_avx512);
  }
#undef SMELT_ISA_FILLED
  return nullptr;
}

const IsaTable& Isa() {
  static const IsaTable* chosen = ChooseIsa();
  return *chosen;
}

}  // namespace smelt
