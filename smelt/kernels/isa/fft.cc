#include "smelt/kernels/isa/fft.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

SMELT_FILL_FOR_ISA(FillFft, FftLoops<float>)
SMELT_FILL_FOR_ISA(FillFft, FftLoops<double>)
SMELT_TABLE_FOR_ISA(IsaFftLines, FillFftLines, FftLineLoops)

template <typename T>
const FftLoops<T>& IsaFft() {
  static const FftLoops<T> loops = [] {
    FftLoops<T> t;
    FillFftForIsa(t);
    return t;
  }();
  return loops;
}
template const FftLoops<float>& IsaFft<float>();
template const FftLoops<double>& IsaFft<double>();

}  // namespace smelt
