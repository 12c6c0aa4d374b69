#include "smelt/kernels/isa/integers.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_FILL_FOR_ISA(FillIntegers, IntegerTable)

namespace {

const IntegerTable& Integers() {
  static const IntegerTable table = [] {
    IntegerTable t = {};
    FillIntegersForIsa(t);
    return t;
  }();
  return table;
}

}  // namespace

IsaBinaryLoops IntegerLoops(IntegerBinary op, IsaType type) {
  return Integers().binary[static_cast<int>(op)][static_cast<int>(type)];
}

IntegerFn IntegerRow(IntegerUnary op, IsaType type) {
  return Integers().unary[static_cast<int>(op)][static_cast<int>(type)];
}

}  // namespace smelt
