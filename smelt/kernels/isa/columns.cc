#include "smelt/kernels/isa/columns.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_TABLE_FOR_ISA(IsaColumns, FillColumns, ColumnLoops)

}  // namespace smelt
