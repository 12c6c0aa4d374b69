// Loops over integers alone: quotients, remainders, bits, signs. Compiled per instruction set as
// those of isa.h are.
#ifndef SMELT_KERNELS_ISA_INTEGERS_H_
#define SMELT_KERNELS_ISA_INTEGERS_H_

#include "smelt/kernels/isa/isa.h"

namespace smelt {

enum class IntegerBinary : uint8_t {
  // No divisor may be 0. The least number divided by -1 wraps around.
  kDivTruncate,
  kDivFloor,
  kModTruncate,
  kModFloor,  // the remainder has the divisor's sign
  kAnd,
  kOr,
  kXor,
  // Distances are held within the width of the type; to the right, signs are kept.
  kShiftLeft,
  kShiftRight,
  kCount,
};
enum class IntegerUnary : uint8_t {
  kAbs,  // of the least number: itself
  kNeg,
  kSign,
  kSquare,
  kInvert,
  kNot,  // of bools, which are 0 or 1: kU8 only
  kCount,
};

using IntegerFn = void (*)(const void* x, void* y, int64_t n, float unused);
struct IntegerTable {
  IsaBinaryLoops binary[static_cast<int>(IntegerBinary::kCount)][static_cast<int>(IsaType::kCount)];
  IntegerFn unary[static_cast<int>(IntegerUnary::kCount)][static_cast<int>(IsaType::kCount)];
};

// Of the set that Isa() chose. Empty loops, or nullptr, where a type has none: quotients of 64 bits
// and of 8, shifts of 8.
IsaBinaryLoops IntegerLoops(IntegerBinary op, IsaType type);
IntegerFn IntegerRow(IntegerUnary op, IsaType type);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_INTEGERS_H_
