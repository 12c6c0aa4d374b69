#include "smelt/kernels/isa/int8.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

namespace isa_sse2 {
void FillInt8(Int8Loops& t);
}
namespace isa_avx2 {
void FillInt8(Int8Loops& t);
}
namespace isa_avx512 {
void FillInt8(Int8Loops& t);
}

const Int8Loops& IsaInt8() {
  static const Int8Loops loops = [] {
    Int8Loops t;
    FillForIsa(t, isa_sse2::FillInt8, isa_avx2::FillInt8, isa_avx512::FillInt8);
    return t;
  }();
  return loops;
}

}  // namespace smelt
