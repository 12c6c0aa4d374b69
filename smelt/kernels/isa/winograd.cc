#include "smelt/kernels/isa/winograd.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_TABLE_FOR_ISA(IsaWinograd, FillWinograd, WinogradLoops)

}  // namespace smelt
