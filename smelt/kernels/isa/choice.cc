#include "smelt/kernels/isa/choice.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_TABLE_FOR_ISA(IsaChoice, FillChoice, ChoiceLoops)

}  // namespace smelt
