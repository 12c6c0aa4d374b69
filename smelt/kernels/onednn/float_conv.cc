#include "smelt/kernels/onednn/float_conv.h"

#include <array>
#include <cstring>

#include "smelt/kernels/nn/conv_reference.h"
#include "smelt/kernels/onednn/fused_post_ops.h"

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

void ConvPlain(const nn::ConvProblem& p, const Tensor& x, const Tensor& w, Tensor* out) {
  if (x.num_elements() > 0) {
    nn::ConvReference(p, x, w, out);
  } else {
    // No channels, or nothing but padding.
    std::memset(out->raw(), 0, out->bytes());
  }
}

Status FloatConv::Run(const nn::ConvProblem& p, const Tensor& x, const Tensor& w,
                      bool constant_filter, const nn::FusedOps& fused_ops, nn::FusedArgs args,
                      Tensor* out, Allocator* allocator) {
  const Dtype dtype = x.dtype();
  PlanKey key = MakePlanKey({&x.shape(), &w.shape()});
  key.push_back(static_cast<int64_t>(dtype));
  // Ops of XLA are told their windows by their inputs.
  for (const Dims* d : {&p.strides, &p.dilations, &p.pad_before, &p.pad_after}) {
    key.insert(key.end(), d->begin(), d->end());
  }
  std::shared_ptr<const Primitive> plan;
  if (x.num_elements() > 0 && !plans_.Find(key, &plan)) {
    const ConvLayouts l = MakeConvLayouts(p, dtype);
    const auto fused = MakeFusedPostOps(fused_ops, l.dst, 1);
    Layout bias;
    if (fused.bias) bias = Layout::Dense(Dtype::kFloat, std::array<int64_t, 1>{p.out_depth});
    auto made = Primitive::Convolution(l.src, Layout::Chosen(dtype, l.weights.dims), bias, l.dst,
                                       ConvWindow(p), fused.post_ops);
    if (!made.ok() && !absl::IsUnimplemented(made.status())) return made.status();
    if (made.ok()) plan = *std::move(made);
    plans_.Insert(key, plan);
  }
  if (plan == nullptr) {
    if (dtype != Dtype::kFloat) return Unimplemented("no convolution of ", DtypeName(dtype));
    ConvPlain(p, x, w, out);
    nn::ApplyFusedOps(fused_ops, args, p.channels_last ? p.output.rank() - 1 : 1, out);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const Tensor packed, weights_.Get(plan, MakeConvLayouts(p, dtype).weights, w,
                                                     constant_filter, allocator));
  ASSIGN_OR_RETURN(const auto pointers, FusedPointers::Make(fused_ops, args, allocator));
  return plan->Run(pointers.Tensors(x.raw(), packed.raw(), out->raw()), allocator);
}

}  // namespace smelt::onednn
