#include "smelt/kernels/isa/int8.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_TABLE_FOR_ISA(IsaInt8, FillInt8, Int8Loops)

}  // namespace smelt
