#include "smelt/kernels/onednn/conv_layout.h"

#include <algorithm>

namespace smelt::onednn {

ConvLayouts MakeConvLayouts(const nn::ConvProblem& p, Dtype dtype) {
  ConvLayouts l;
  l.src = Layout::Image(dtype, p.batch, p.in_depth, p.in, p.channels_last);
  l.dst = Layout::Image(dtype, p.batch, p.out_depth, p.out, p.channels_last);
  l.weights.dtype = dtype;
  const int64_t group_out = p.out_depth / p.groups;
  if (p.groups > 1) {
    l.weights.dims.push_back(p.groups);
    l.weights.strides.push_back(group_out);
  }
  l.weights.dims.push_back(group_out);
  l.weights.strides.push_back(1);
  l.weights.dims.push_back(p.filter_in);
  l.weights.strides.push_back(p.out_depth);
  const size_t first = l.weights.dims.size();
  l.weights.dims.insert(l.weights.dims.end(), p.kernel.begin(), p.kernel.end());
  l.weights.strides.resize(l.weights.dims.size());
  int64_t stride = p.filter_in * p.out_depth;
  for (size_t i = l.weights.dims.size(); i-- > first;) {
    l.weights.strides[i] = stride;
    stride *= l.weights.dims[i];
  }
  return l;
}

Window ConvWindow(const nn::ConvProblem& p) {
  return {p.strides, p.dilations, p.pad_before, p.pad_after};
}

bool SeesPaddingAlone(const Layout& src, const Layout& weights, const Layout& dst,
                      const Window& window) {
  const size_t spatial = window.strides.size();
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t in = src.dims[2 + i], out = dst.dims[2 + i];
    const int64_t taps = weights.dims[weights.dims.size() - spatial + i];
    for (int64_t o = 0; o < out; ++o) {
      const int64_t first = o * window.strides[i] - window.pad_before[i];
      bool sees = false;
      for (int64_t t = 0; t < taps && !sees; ++t) {
        const int64_t at = first + t * window.dilations[i];
        sees = at >= 0 && at < in;
      }
      if (!sees) return true;
    }
  }
  return false;
}

int WholeAddend(std::span<const PostOp> post_ops, const Layout& dst) {
  for (size_t i = 0; i < post_ops.size(); ++i) {
    const PostOp& p = post_ops[i];
    if (p.kind == PostOp::Kind::kAdd && p.operand.dtype == dst.dtype &&
        p.operand.dims == dst.dims && p.operand.strides == dst.strides) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool AddsWhole(const PostOp& p, const Layout& dst) {
  return p.kind == PostOp::Kind::kAdd && p.operand.dims == dst.dims &&
         std::ranges::any_of(dst.dims, [](int64_t d) { return d > 1; });
}

}  // namespace smelt::onednn
