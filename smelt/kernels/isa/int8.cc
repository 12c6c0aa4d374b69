#include "smelt/kernels/isa/int8.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_FILL_FOR_ISA(FillInt8, Int8Loops)

const Int8Loops& IsaInt8() {
  static const Int8Loops loops = [] {
    Int8Loops t;
    FillInt8ForIsa(t);
    return t;
  }();
  return loops;
}

}  // namespace smelt
