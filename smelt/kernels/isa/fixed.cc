#include "smelt/kernels/isa/fixed.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_TABLE_FOR_ISA(IsaFixed, FillFixed, FixedLoops)

}  // namespace smelt
