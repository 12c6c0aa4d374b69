#include "smelt/kernels/isa/integers.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

namespace isa_sse2 {
void FillIntegers(IntegerTable& t);
}
namespace isa_avx2 {
void FillIntegers(IntegerTable& t);
}
namespace isa_avx512 {
void FillIntegers(IntegerTable& t);
}

namespace {

const IntegerTable& Integers() {
  static const IntegerTable table = [] {
    IntegerTable t = {};
    FillForIsa(t, isa_sse2::FillIntegers, isa_avx2::FillIntegers, isa_avx512::FillIntegers);
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
