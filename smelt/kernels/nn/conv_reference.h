// Convolution in plain loops: every shape and padding, float, double and int32.
#ifndef SMELT_KERNELS_NN_CONV_REFERENCE_H_
#define SMELT_KERNELS_NN_CONV_REFERENCE_H_

#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

// REQUIRES: tensors of one type (float, double, int32) and of the problem's shapes; a filter of
// [spatial..., filter_in, out_depth] elements; a non-empty output.
void ConvReference(const ConvProblem& p, const Tensor& input, const Tensor& filter, Tensor* output);

// The transpose: adds filter * grad over the windows of `input_grad`, which has the shape of the
// forward convolution's input; `grad` has the shape of its output.
void ConvTransposeReference(const ConvProblem& p, const Tensor& grad, const Tensor& filter,
                            Tensor* input_grad);

// The gradient for the filter, of float or double: input * grad summed over all pixels.
void ConvFilterReference(const ConvProblem& p, const Tensor& input, const Tensor& grad,
                         Tensor* filter_grad);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_CONV_REFERENCE_H_
