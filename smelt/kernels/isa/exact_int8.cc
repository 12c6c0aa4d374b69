#include "smelt/kernels/isa/exact_int8.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_FILL_FOR_ISA(FillExactInt8, ExactInt8Loops)

const ExactInt8Loops& IsaExactInt8() {
  static const ExactInt8Loops loops = [] {
    ExactInt8Loops t;
    FillExactInt8ForIsa(t);
    FillOwnExactInt8(t);
    return t;
  }();
  return loops;
}

}  // namespace smelt
