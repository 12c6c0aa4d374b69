#include "smelt/kernels/isa/planar.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_TABLE_FOR_ISA(IsaPlanar, FillPlanar, PlanarLoops)

}  // namespace smelt
