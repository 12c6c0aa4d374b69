// Layers of int8 numbers, whose shapes and weights are known, by the fastest loops that the
// processor has for them: products of matrices, depthwise loops of dot products, else Int8Layer's.
// All answer bit for bit the same.
#ifndef SMELT_KERNELS_LITE_BIND_INT8_H_
#define SMELT_KERNELS_LITE_BIND_INT8_H_

#include <memory>

#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/lite/int8_layer.h"
#include "smelt/kernels/nn/matrix_int8.h"

namespace smelt::lite {

// `weights` as Int8Layer has them. Of the arguments nothing is kept but packed weights, those of
// matrices in `matrices`, which must outlive what is bound. Thread safe. REQUIRES: as Int8Layer.
StatusOr<std::unique_ptr<BoundKernel>> BindInt8(const nn::Int8Window& shape,
                                                const Int8Numbers& numbers, const Tensor& weights,
                                                nn::MatrixInt8& matrices);

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_BIND_INT8_H_
