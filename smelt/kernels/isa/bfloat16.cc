#include "smelt/kernels/isa/bfloat16.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_FILL_FOR_ISA(FillBfloat16, Bfloat16Table)

namespace {

const Bfloat16Table& Bfloat16Tables() {
  static const Bfloat16Table table = [] {
    Bfloat16Table t = {};
    FillBfloat16ForIsa(t);
    return t;
  }();
  return table;
}

}  // namespace

IsaBinaryLoops Bfloat16Loops(IsaBinary op) { return Bfloat16Tables().binary[static_cast<int>(op)]; }

Bfloat16UnaryFn Bfloat16Unary(UnaryF32 op) { return Bfloat16Tables().unary[static_cast<int>(op)]; }

}  // namespace smelt
