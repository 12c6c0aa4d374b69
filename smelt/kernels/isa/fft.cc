#include "smelt/kernels/isa/fft.h"

#include "smelt/kernels/isa/fill_for_isa.h"

namespace smelt {

#define SMELT_FFT_COPY(ns)           \
  namespace ns {                     \
  void FillFft(FftLoops<float>& t);  \
  void FillFft(FftLoops<double>& t); \
  }
SMELT_FFT_COPY(isa_sse2)
SMELT_FFT_COPY(isa_avx2)
SMELT_FFT_COPY(isa_avx512)
#undef SMELT_FFT_COPY

template <typename T>
const FftLoops<T>& IsaFft() {
  static const FftLoops<T> loops = [] {
    FftLoops<T> t;
    FillForIsa<FftLoops<T>>(t, isa_sse2::FillFft, isa_avx2::FillFft, isa_avx512::FillFft);
    return t;
  }();
  return loops;
}
template const FftLoops<float>& IsaFft<float>();
template const FftLoops<double>& IsaFft<double>();

}  // namespace smelt
