// Arithmetic of bfloat16, each element widened, computed and rounded in registers; compiled per
// instruction set as the loops of isa.h are.
#ifndef SMELT_KERNELS_ISA_BFLOAT16_H_
#define SMELT_KERNELS_ISA_BFLOAT16_H_

#include "smelt/kernels/isa/isa.h"

namespace smelt {

using Bfloat16UnaryFn = void (*)(const void* x, void* y, int64_t n, float alpha);
struct Bfloat16Table {
  IsaBinaryLoops binary[static_cast<int>(IsaBinary::kCount)];
  Bfloat16UnaryFn unary[static_cast<int>(UnaryF32::kCount)];
};

// Of the set that Isa() chose, over bfloat16 elements; empty for ops that have no such loops.
IsaBinaryLoops Bfloat16Loops(IsaBinary op);
Bfloat16UnaryFn Bfloat16Unary(UnaryF32 op);  // nullptr where there is none

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_BFLOAT16_H_
