#include "smelt/kernels/isa/columns.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_FILL_FOR_ISA(FillColumns, ColumnLoops)

const ColumnLoops& IsaColumns() {
  static const ColumnLoops table = [] {
    ColumnLoops t = {};
    FillColumnsForIsa(t);
    return t;
  }();
  return table;
}

}  // namespace smelt
