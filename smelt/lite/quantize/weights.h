// Float constants as integers or narrow floats.
#ifndef SMELT_LITE_QUANTIZE_WEIGHTS_H_
#define SMELT_LITE_QUANTIZE_WEIGHTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "smelt/tensor/tensor.h"

namespace smelt {

// A symmetric quantization: real = scales[i] * q with q in [-(2^(bits-1) - 1), 2^(bits-1) - 1].
struct QuantizedWeights {
  Tensor values;  // int8; int4 where there are at most 4 bits
  std::vector<float> scales;
  int64_t zero = 0;  // of uint8
};

// One scale for the tensor (`dim` < 0), or one for each index of dimension `dim`. Numbers are
// rounded to nearest, halves away from zero. Where all numbers of an index are zero its scale is 1.
// `least`: scales are no smaller, each than its own. INVALID_ARGUMENT when a number is not finite.
// REQUIRES: float, dim < rank, 2 <= bits <= 8, `least` has as many numbers as there are scales.
StatusOr<QuantizedWeights> QuantizeWeights(const Tensor& weights, int dim, int bits = 8,
                                           std::span<const float> least = {});

// The same with a scale for each `block` elements that lie together, row by row. Scales are numbers
// of float16 and, but for the smallest, of bfloat16, as kernels keep one or the other. REQUIRES:
// the last dimension is a multiple of `block`.
StatusOr<QuantizedWeights> QuantizeBlocks(const Tensor& weights, int64_t block, int bits);

// The same where the weights are the integers of `bits` times a step for the tensor, or for each
// index of dimension `dim`, as roundings in training leave them: that step is the scale, and what
// is quantized loses nothing. `whole`: -2^(bits-1) is one of the integers as well. Nothing: they
// are not. REQUIRES as above.
std::optional<QuantizedWeights> OnGrid(const Tensor& weights, int dim, int bits = 8,
                                       bool whole = false);

// uint8 with one scale, as TensorFlow's converter of version 1 has them: the multiples of a step of
// which all are, where `on_grid` and there is one; else 1 for the least number, or zero, and 255
// for the greatest. INVALID_ARGUMENT when a number is not finite.
StatusOr<QuantizedWeights> QuantizeUint8(const Tensor& weights, bool on_grid);

// Half, to nearest even; numbers beyond its range, infinities too, become its largest.
StatusOr<Tensor> HalfWeights(const Tensor& weights);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_WEIGHTS_H_
