#include "smelt/kernels/isa/conv.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_FILL_FOR_ISA(FillConv, ConvLoops)
SMELT_FILL_FOR_ISA(FillDepthwise, ConvLoops)
SMELT_FILL_FOR_ISA(FillPool, ConvLoops)

const ConvLoops& IsaConv() {
  static const ConvLoops table = [] {
    ConvLoops t = {};
    FillConvForIsa(t);
    FillDepthwiseForIsa(t);
    FillPoolForIsa(t);
    return t;
  }();
  return table;
}

}  // namespace smelt
