#include "smelt/kernels/isa/choice.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_FILL_FOR_ISA(FillChoice, ChoiceLoops)

const ChoiceLoops& IsaChoice() {
  static const ChoiceLoops table = [] {
    ChoiceLoops t = {};
    FillChoiceForIsa(t);
    return t;
  }();
  return table;
}

}  // namespace smelt
