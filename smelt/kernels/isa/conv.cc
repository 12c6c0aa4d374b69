#include "smelt/kernels/isa/conv.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

#define SMELT_CONV_COPY(ns)         \
  namespace ns {                    \
  void FillConv(ConvLoops& t);      \
  void FillDepthwise(ConvLoops& t); \
  }
SMELT_CONV_COPY(isa_sse2)
SMELT_CONV_COPY(isa_avx2)
SMELT_CONV_COPY(isa_avx512)
#undef SMELT_CONV_COPY

const ConvLoops& IsaConv() {
  static const ConvLoops table = [] {
    ConvLoops t = {};
    FillForIsa(t, isa_sse2::FillConv, isa_avx2::FillConv, isa_avx512::FillConv);
    FillForIsa(t, isa_sse2::FillDepthwise, isa_avx2::FillDepthwise, isa_avx512::FillDepthwise);
    return t;
  }();
  return table;
}

}  // namespace smelt
