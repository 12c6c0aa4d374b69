#include "smelt/kernels/nn/conv_gradient.h"

namespace smelt::nn {

Status CheckConv3DGradient(const Shape& input, const Shape& filter, const Shape& output,
                           bool channels_last) {
  if (input.rank() != 5) return InvalidArgument("input tensor must have 5 dimensions");
  if (filter.rank() != 5) return InvalidArgument("filter_sizes tensor must have 5 dimensions");
  if (output.rank() != 5) return InvalidArgument("out_backprop tensor must have 5 dimensions");
  const int channels = channels_last ? 4 : 1;
  if (input[channels] != filter[3]) {
    return InvalidArgument("input and filter_sizes must have the same number of channels. Got ",
                           input[channels], " for input and ", filter[3], " for filter_sizes");
  }
  if (output[channels] != filter[4]) {
    return InvalidArgument(
        "out_backprop and filter_sizes must have the same number of channels. Got ",
        output[channels], " for out_backprop and ", filter[4], " for filter_sizes");
  }
  return OkStatus();
}

}  // namespace smelt::nn
