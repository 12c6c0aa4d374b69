#include "smelt/kernels/isa/bfloat16.h"

namespace smelt {

namespace isa_sse2 {
IsaBinaryLoops NarrowLoops(IsaBinary op);
Bfloat16UnaryFn NarrowUnary(UnaryF32 op);
}  // namespace isa_sse2
namespace isa_avx2 {
IsaBinaryLoops NarrowLoops(IsaBinary op);
Bfloat16UnaryFn NarrowUnary(UnaryF32 op);
}  // namespace isa_avx2
namespace isa_avx512 {
IsaBinaryLoops NarrowLoops(IsaBinary op);
Bfloat16UnaryFn NarrowUnary(UnaryF32 op);
}  // namespace isa_avx512

IsaBinaryLoops Bfloat16Loops(IsaBinary op) {
  switch (Isa().level) {
    case IsaLevel::kBaseline:
      return isa_sse2::NarrowLoops(op);
    case IsaLevel::kAvx2:
      return isa_avx2::NarrowLoops(op);
    case IsaLevel::kAvx512:
      return isa_avx512::NarrowLoops(op);
  }
  return {};
}

Bfloat16UnaryFn Bfloat16Unary(UnaryF32 op) {
  switch (Isa().level) {
    case IsaLevel::kBaseline:
      return isa_sse2::NarrowUnary(op);
    case IsaLevel::kAvx2:
      return isa_avx2::NarrowUnary(op);
    case IsaLevel::kAvx512:
      return isa_avx512::NarrowUnary(op);
  }
  return nullptr;
}

}  // namespace smelt
