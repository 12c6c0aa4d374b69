// Convolutions in oneDNN's terms. Used by the sources that make primitives of them.
#ifndef SMELT_KERNELS_ONEDNN_CONV_LAYOUT_H_
#define SMELT_KERNELS_ONEDNN_CONV_LAYOUT_H_

#include "smelt/kernels/nn/window.h"
#include "smelt/kernels/onednn/primitive.h"

namespace smelt::onednn {

// The smaller image (a forward convolution's output) and the larger one.
Layout ConvOutputLayout(const nn::ConvProblem& p);
Layout ConvInputLayout(const nn::ConvProblem& p);
// The filter as it lies in TensorFlow, with the library's logical order: (groups,) out, in,
// spatial.
Layout FilterLayout(const nn::ConvProblem& p);
Window ConvWindow(const nn::ConvProblem& p);

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_CONV_LAYOUT_H_
