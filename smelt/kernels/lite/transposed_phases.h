// TRANSPOSE_CONV as convolutions: results whose lines and columns have the same remainders by the
// strides (a phase) see the same taps, at neighboring pixels of the input.
#ifndef SMELT_KERNELS_LITE_TRANSPOSED_PHASES_H_
#define SMELT_KERNELS_LITE_TRANSPOSED_PHASES_H_

#include <memory>
#include <span>

#include "absl/functional/function_ref.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/lite/layer_shape.h"

namespace smelt::lite {

// Binds a phase of the layer over `image`: `weights` are int8 [units, kernel_h, kernel_w, depth]
// and kept by none but what is bound. Its input 0 is the layer's image; it writes [batch, out_h,
// out_w, units].
using BindPhaseFn = absl::FunctionRef<StatusOr<std::unique_ptr<BoundKernel>>(
    const Image& image, const nn::Int8Window& window, const Tensor& weights)>;

// The layer of inputs that are the output's shape, the filter and the image. nullptr where tensors
// do not fit, which a run words, where weights are not constant, or where a phase begins behind the
// image's first pixel; where `bind` made none.
StatusOr<std::unique_ptr<BoundKernel>> BindPhases(const LayerWindow& s,
                                                  std::span<const BoundTensor> inputs,
                                                  const BoundTensor& output, BindPhaseFn bind);

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_TRANSPOSED_PHASES_H_
