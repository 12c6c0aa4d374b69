#include "smelt/kernels/nn/int8_window.h"

#include <algorithm>

namespace smelt::nn {

Int8Window Int8Window::Of(const ConvProblem& p) {
  Int8Window w;
  w.batch = p.batch;
  w.in_h = p.in[0], w.in_w = p.in[1];
  w.depth = p.in_depth, w.units = p.out_depth;
  w.out_h = p.out[0], w.out_w = p.out[1];
  w.kernel_h = p.kernel[0], w.kernel_w = p.kernel[1];
  w.top = p.pad_before[0], w.left = p.pad_before[1];
  w.stride_h = p.strides[0], w.stride_w = p.strides[1];
  w.dilation_h = p.dilations[0], w.dilation_w = p.dilations[1];
  w.depthwise = p.groups == p.in_depth && p.filter_in == 1 && p.groups > 1;
  w.groups = w.depthwise ? 1 : p.groups;
  // All pixels in one column: bands may end anywhere.
  if (w.kernel_h == 1 && w.kernel_w == 1 && w.stride_h == 1 && w.stride_w == 1 &&
      w.out_h == w.in_h && w.out_w == w.in_w && w.top == 0 && w.left == 0) {
    w.in_h = w.out_h = w.batch * w.in_h * w.in_w;
    w.batch = w.in_w = w.out_w = 1;
  }
  return w;
}

ConvProblem Int8Window::AsConv() const {
  ConvProblem p;
  p.batch = batch;
  p.in_depth = depth;
  p.out_depth = units;
  p.groups = depthwise ? depth : groups;
  p.filter_in = depth / p.groups;
  p.in = {in_h, in_w};
  p.kernel = {kernel_h, kernel_w};
  p.out = {out_h, out_w};
  p.strides = {stride_h, stride_w};
  p.dilations = {dilation_h, dilation_w};
  p.pad_before = {top, left};
  const auto after = [](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                        int64_t before) {
    return std::max<int64_t>(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - in - before);
  };
  p.pad_after = {after(in_h, out_h, kernel_h, stride_h, dilation_h, top),
                 after(in_w, out_w, kernel_w, stride_w, dilation_w, left)};
  p.output = Shape({batch, out_h, out_w, units});
  return p;
}

Int8Window Int8Window::OfRows(int64_t rows, int64_t depth, int64_t units) {
  Int8Window w;
  w.in_h = w.out_h = rows;
  w.depth = depth;
  w.units = units;
  return w;
}

}  // namespace smelt::nn
