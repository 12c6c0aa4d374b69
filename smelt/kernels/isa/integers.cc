#include "smelt/kernels/isa/integers.h"

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
    switch (Isa().level) {
      case IsaLevel::kBaseline:
        isa_sse2::FillIntegers(t);
        break;
      case IsaLevel::kAvx2:
        isa_avx2::FillIntegers(t);
        break;
      case IsaLevel::kAvx512:
        isa_avx512::FillIntegers(t);
        break;
    }
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
