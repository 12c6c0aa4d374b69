// Convolutions in oneDNN's terms. Used by the sources that make primitives of them.
#ifndef SMELT_KERNELS_ONEDNN_CONV_LAYOUT_H_
#define SMELT_KERNELS_ONEDNN_CONV_LAYOUT_H_

#include "smelt/kernels/nn/window.h"
#include "smelt/kernels/onednn/primitive.h"

namespace smelt::onednn {

// A convolution's tensors as they lie in TensorFlow: src is the larger image (the forward
// convolution's input), dst the smaller one; the filter has the library's logical order: (groups,)
// out, in, spatial.
struct ConvLayouts {
  Layout src, weights, dst;
};
ConvLayouts MakeConvLayouts(const nn::ConvProblem& p, Dtype dtype);
Window ConvWindow(const nn::ConvProblem& p);
// Does a window lie where there is nothing but padding, along one dimension?
bool SeesPaddingAlone(const Layout& src, const Layout& weights, const Layout& dst,
                      const Window& window);

// The first kAdd whose tensor has dst's layout, so that it may be copied to dst and added there;
// -1: none.
int WholeAddend(std::span<const PostOp> post_ops, const Layout& dst);
// Does the step add a tensor of the shape of a dst that is more than one number?
bool AddsWhole(const PostOp& p, const Layout& dst);

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_CONV_LAYOUT_H_
