#include "smelt/kernels/isa/conv.h"

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
    switch (Isa().level) {
      case IsaLevel::kBaseline:
        isa_sse2::FillConv(t);
        isa_sse2::FillDepthwise(t);
        break;
      case IsaLevel::kAvx2:
        isa_avx2::FillConv(t);
        isa_avx2::FillDepthwise(t);
        break;
      case IsaLevel::kAvx512:
        isa_avx512::FillConv(t);
        isa_avx512::FillDepthwise(t);
        break;
    }
    return t;
  }();
  return table;
}

}  // namespace smelt
