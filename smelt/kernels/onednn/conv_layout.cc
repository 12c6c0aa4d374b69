#include "smelt/kernels/onednn/conv_layout.h"

namespace smelt::onednn {

Layout ConvOutputLayout(const nn::ConvProblem& p) {
  return Layout::Image(Dtype::kFloat, p.batch, p.out_depth, p.out, p.channels_last);
}

Layout ConvInputLayout(const nn::ConvProblem& p) {
  return Layout::Image(Dtype::kFloat, p.batch, p.in_depth, p.in, p.channels_last);
}

Layout FilterLayout(const nn::ConvProblem& p) {
  Layout l;
  const int64_t group_out = p.out_depth / p.groups;
  if (p.groups > 1) {
    l.dims.push_back(p.groups);
    l.strides.push_back(group_out);
  }
  l.dims.push_back(group_out);
  l.strides.push_back(1);
  l.dims.push_back(p.filter_in);
  l.strides.push_back(p.out_depth);
  const size_t first = l.dims.size();
  l.dims.insert(l.dims.end(), p.kernel.begin(), p.kernel.end());
  l.strides.resize(l.dims.size());
  int64_t stride = p.filter_in * p.out_depth;
  for (size_t i = l.dims.size(); i-- > first;) {
    l.strides[i] = stride;
    stride *= l.dims[i];
  }
  return l;
}

Window ConvWindow(const nn::ConvProblem& p) {
  return {p.strides, p.dilations, p.pad_before, p.pad_after};
}

}  // namespace smelt::onednn
