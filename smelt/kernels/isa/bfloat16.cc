#include "smelt/kernels/isa/bfloat16.h"

namespace smelt {

namespace isa_sse2 {
IsaBinaryLoops NarrowLoops(IsaBinary op);
}
namespace isa_avx2 {
IsaBinaryLoops NarrowLoops(IsaBinary op);
}
namespace isa_avx512 {
IsaBinaryLoops NarrowLoops(IsaBinary op);
}

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

}  // namespace smelt
