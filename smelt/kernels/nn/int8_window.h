// What a layer of int8 numbers sees of its input, for known shapes.
#ifndef SMELT_KERNELS_NN_INT8_WINDOW_H_
#define SMELT_KERNELS_NN_INT8_WINDOW_H_

#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

// A product of rows is a window of one pixel over an image of one pixel in a line, or of one line.
struct Int8Window {
  int64_t batch = 1, in_h = 1, in_w = 1, depth = 1, units = 1;
  int64_t out_h = 1, out_w = 1, kernel_h = 1, kernel_w = 1, top = 0, left = 0;
  int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
  bool depthwise = false;  // units / depth units for each channel
  int64_t outputs() const { return batch * out_h * out_w; }

  static Int8Window Of(const ConvProblem& p);
  // A convolution with these windows. REQUIRES: units is a multiple of groups, or of depth where
  // `depthwise`.
  ConvProblem AsConv() const;
  static Int8Window OfRows(int64_t rows, int64_t depth, int64_t units);
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_INT8_WINDOW_H_
