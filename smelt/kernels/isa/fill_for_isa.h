// Fills a table of loops from the copy of the instruction set that the process uses. Not for
// *.isa.cpp files, which take no inline functions (isa.h).
#ifndef SMELT_KERNELS_ISA_FILL_FOR_ISA_H_
#define SMELT_KERNELS_ISA_FILL_FOR_ISA_H_

#include "smelt/kernels/isa/isa.h"

namespace smelt {

template <typename Table>
void FillForIsa(Table& t, void (*sse2)(Table&), void (*avx2)(Table&), void (*avx512)(Table&)) {
  switch (Isa().level) {
    case IsaLevel::kBaseline:
      return sse2(t);
    case IsaLevel::kAvx2:
      return avx2(t);
    case IsaLevel::kAvx512:
      return avx512(t);
  }
}

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_FILL_FOR_ISA_H_
