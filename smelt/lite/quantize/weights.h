// Float constants as integers or narrow floats.
#ifndef SMELT_LITE_QUANTIZE_WEIGHTS_H_
#define SMELT_LITE_QUANTIZE_WEIGHTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "smelt/tensor/tensor.h"

namespace smelt {

// A symmetric quantization: real = scales[i] * q with q in [-(2^(bits-1) - 1), 2^(bits-1) - 1].
struct QuantizedWeights {
  Tensor values;  // int8; int4 where there are at most 4 bits
  std::vector<float> scales;
};

// One scale for the tensor (`dim` < 0), or one for each index of dimension `dim`. Numbers are
// rounded to nearest, halves away from zero. Where all numbers of an index are zero its scale is 1.
// INVALID_ARGUMENT when a number is not finite. REQUIRES: float, dim < rank, 2 <= bits <= 8.
StatusOr<QuantizedWeights> QuantizeWeights(const Tensor& weights, int dim, int bits = 8);

// The same with a scale for each `block` elements that lie together, row by row. Scales are numbers
// of float16 and, but for the smallest, of bfloat16, as kernels keep one or the other. REQUIRES:
// the last dimension is a multiple of `block`.
StatusOr<QuantizedWeights> QuantizeBlocks(const Tensor& weights, int64_t block, int bits);

// The same where the weights are the integers of `bits` times a step for the tensor, or for each
// index of dimension `dim`, as roundings in training leave them: that step is the scale, and what
// is quantized loses nothing. Nothing: they are not. REQUIRES as above.
std::optional<QuantizedWeights> OnGrid(const Tensor& weights, int dim, int bits = 8);

// Half, to nearest even; numbers beyond its range, infinities too, become its largest.
StatusOr<Tensor> HalfWeights(const Tensor& weights);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_WEIGHTS_H_
