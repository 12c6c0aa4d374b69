#include "smelt/kernels/isa/isa.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "smelt/base/processor.h"

namespace smelt {

#define SMELT_ISA_DECLARE(level, set, ...) \
  namespace isa_##set {                    \
    void FillElementwise(IsaTable& t);     \
    void FillMath(IsaTable& t);            \
    void FillRows(IsaTable& t);            \
    void FillDense(IsaTable& t);           \
    void FillLstmCell(IsaTable& t);        \
  }
SMELT_ISA_SETS(SMELT_ISA_DECLARE)
#undef SMELT_ISA_DECLARE

namespace {

// The sets of this processor's kind, the least first. Only the tables that are asked for are
// filled: their code lies far apart.
struct IsaSet {
  IsaLevel level;
  const char* name;
  const IsaTable* (*table)();
};
template <IsaLevel kLevel>
const IsaTable* FilledIsa(const char* name, void (*elementwise)(IsaTable&), void (*math)(IsaTable&),
                          void (*rows)(IsaTable&), void (*dense)(IsaTable&),
                          void (*lstm_cell)(IsaTable&)) {
  static const IsaTable* table = [&] {
    auto* t = new IsaTable{};
    t->level = kLevel;
    t->name = name;
    for (const auto fill : {elementwise, math, rows, dense, lstm_cell}) fill(*t);
    return t;
  }();
  return table;
}
#define SMELT_ISA_SET(level, set, ...)                                                        \
  {IsaLevel::level, #set, [] {                                                                \
     return FilledIsa<IsaLevel::level>(#set, isa_##set::FillElementwise, isa_##set::FillMath, \
                                       isa_##set::FillRows, isa_##set::FillDense,             \
                                       isa_##set::FillLstmCell);                              \
   }},
constexpr IsaSet kIsaSets[] = {SMELT_ISA_SETS(SMELT_ISA_SET)};
#undef SMELT_ISA_SET
static_assert(kIsaSets[0].level == IsaLevel::kBaseline);

const IsaTable* ChooseIsa() {
  const char* wanted = std::getenv("SMELT_ISA");
  size_t last = std::size(kIsaSets) - 1;
  for (size_t i = 0; wanted != nullptr && i < std::size(kIsaSets); ++i) {
    if (std::strcmp(wanted, kIsaSets[i].name) == 0) last = i;
  }
  while (!IsaSupported(kIsaSets[last].level)) --last;
  return kIsaSets[last].table();
}

}  // namespace

bool IsaSupported(IsaLevel level) {
  switch (level) {
    case IsaLevel::kBaseline:
      return true;
    case IsaLevel::kAvx2:
      return CpuHas(CpuFeature::kX86V3);
    case IsaLevel::kAvx512:
      return CpuHas(CpuFeature::kX86V4);
  }
  return false;
}

const IsaTable* IsaOf(IsaLevel level) {
  // Filling runs code of that set, so only where the processor has it.
  if (!IsaSupported(level)) return nullptr;
  for (const IsaSet& set : kIsaSets) {
    if (set.level == level) return set.table();
  }
  return nullptr;
}

const IsaTable& Isa() {
  static const IsaTable* chosen = ChooseIsa();
  return *chosen;
}

}  // namespace smelt
