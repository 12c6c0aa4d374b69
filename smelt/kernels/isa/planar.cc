#include "smelt/kernels/isa/planar.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_FILL_FOR_ISA(FillPlanar, PlanarLoops)

const PlanarLoops& IsaPlanar() {
  static const PlanarLoops table = [] {
    PlanarLoops t = {};
    FillPlanarForIsa(t);
    return t;
  }();
  return table;
}

}  // namespace smelt
