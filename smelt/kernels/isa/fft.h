// One pass of Fourier transforms that run side by side, compiled per instruction set as the loops
// of isa.h are.
#ifndef SMELT_KERNELS_ISA_FFT_H_
#define SMELT_KERNELS_ISA_FFT_H_

#include <cstdint>

namespace smelt {

// Values of `lanes` transforms are interleaved: one complex number of each is `lanes` real parts,
// then `lanes` imaginary parts.
template <typename T>
struct FftLoops {
  int64_t lanes;
  // Decimation in frequency, forward. `in` is [l1][radix][ido] and `out` [radix][l1][ido]: out[j]
  // is the transform of length `radix` over in's middle dimension, its element i times the complex
  // number at twiddles + (j * ido + i) * 2. `roots` holds e^(-2 pi i k / radix) for k < radix, and
  // `scratch` 2 * radix * lanes numbers; neither is used for radix 2, 3, 4 and 5. Arrays must not
  // overlap.
  void (*pass)(int64_t radix, int64_t ido, int64_t l1, const T* twiddles, const T* roots,
               const T* in, T* out, T* scratch);
};

// Of the set that Isa() chose.
template <typename T>
const FftLoops<T>& IsaFft();
extern template const FftLoops<float>& IsaFft<float>();
extern template const FftLoops<double>& IsaFft<double>();

// Lines of floats to and from such transforms, and real lines as complex ones of half the length:
// even places are real parts. A vector is `lanes` floats, a value two of them.
struct FftLineLoops {
  // Vector i of `out`: number i of each of `rows` lines that lie `step` apart; zeros of lanes that
  // have none. 1 <= rows <= lanes.
  void (*turn)(const float* in, int64_t step, int64_t rows, int64_t n, float* out);
  // The reverse, times `scale`.
  void (*turn_back)(const float* in, int64_t step, int64_t rows, int64_t n, float scale,
                    float* out);
  // Real and imaginary parts of n values exchanged.
  void (*exchange)(int64_t n, float* values);
  // Bins 0 to n of the real line whose `n` values have the transform y. `roots`: complex numbers
  // e^(-2 pi i k / 2n) for k <= n.
  void (*split)(const float* y, int64_t n, const float* roots, float* bins);
  // The values whose inverse transform is a real line, without its scale, from bins 0 to n. The
  // first and the last bin count as real.
  void (*join)(const float* bins, int64_t n, const float* roots, float* values);
};
// Of the set that Isa() chose.
const FftLineLoops& IsaFftLines();

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_FFT_H_
