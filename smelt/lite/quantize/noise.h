// How far numbers are from those that were wanted.
#ifndef SMELT_LITE_QUANTIZE_NOISE_H_
#define SMELT_LITE_QUANTIZE_NOISE_H_

#include <cmath>
#include <limits>

#include "smelt/tensor/tensor.h"

namespace smelt {

// Sums of squares: of what was wanted, and of the differences.
struct Noise {
  double signal = 0, noise = 0;

  // Root mean square of the differences as a part of that of what was wanted.
  double Relative() const {
    if (noise == 0) return 0;
    return signal == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(noise / signal);
  }
  // Signal to noise: the same on a scale of -20 a power of ten. Infinite without noise.
  double Decibels() const { return -20 * std::log10(Relative()); }

  // Adds what `got` has for `wanted`, both real. Integers in their place are counted: a signal of
  // one for each, a noise of one for each that differs. INTERNAL for other shapes or types.
  Status Add(const Tensor& wanted, const Tensor& got);
};

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_NOISE_H_
