// Rows of floats of which bytes choose. Thread safe.
#ifndef SMELT_KERNELS_ISA_CHOICE_H_
#define SMELT_KERNELS_ISA_CHOICE_H_

#include <cstdint>

#include "smelt/kernels/isa/isa.h"

namespace smelt {

struct ChoiceLoops {
  // x[i] = x[i] * scale where (c[i] != 0) == keeps, else `other`.
  void (*choose)(float* x, const uint8_t* c, bool keeps, float scale, float other, int64_t n);
};

// Those of the set that Isa() chose.
const ChoiceLoops& IsaChoice();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_CHOICE_H_
