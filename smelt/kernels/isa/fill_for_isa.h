// Fills a table of loops from the copy of the instruction set that the process uses. Not for
// *.isa.cpp files, which take no inline functions (isa.h).
#ifndef SMELT_KERNELS_ISA_FILL_FOR_ISA_H_
#define SMELT_KERNELS_ISA_FILL_FOR_ISA_H_

#include "smelt/base/processor.h"
#include "smelt/kernels/isa/isa.h"

// SMELT_FILL_FOR_ISA(FillX, Table), in namespace smelt: `void FillX(Table&)` of each set, and
// FillXForIsa(table), which calls that of the set that Isa() chose.
#define SMELT_FILL_FOR_ISA(Fill, Table)            \
  SMELT_ISA_SETS(SMELT_ISA_DECLARE_, Fill, Table)  \
  static void Fill##ForIsa(Table& t) {             \
    switch (Isa().level) {                         \
      SMELT_ISA_SETS(SMELT_ISA_CASE_, Fill, Table) \
      default: /* a level of another processor */  \
        break;                                     \
    }                                              \
  }
// SMELT_TABLE_FOR_ISA(Accessor, FillX, Table): that, and `const Table& Accessor()`, whose table is
// filled at the first call. Thread safe.
#define SMELT_TABLE_FOR_ISA(Accessor, Fill, Table) \
  SMELT_FILL_FOR_ISA(Fill, Table)                  \
  const Table& Accessor() {                        \
    static const Table table = [] {                \
      Table t = {};                                \
      Fill##ForIsa(t);                             \
      return t;                                    \
    }();                                           \
    return table;                                  \
  }
#define SMELT_ISA_DECLARE_(level, set, Fill, Table) \
  namespace isa_##set {                             \
    void Fill(Table& t);                            \
  }
#define SMELT_ISA_CASE_(level, set, Fill, Table) \
  case IsaLevel::level:                          \
    return isa_##set::Fill(t);

#endif  // SMELT_KERNELS_ISA_FILL_FOR_ISA_H_
