#include "smelt/kernels/onednn/float_conv.h"

#include <array>
#include <cstring>

#include "smelt/kernels/nn/conv_reference.h"
#include "smelt/kernels/onednn/conv_layout.h"
#include "smelt/kernels/onednn/fused_post_ops.h"

namespace smelt::onednn {
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
  PlanKey key = MakePlanKey({&x.shape(), &w.shape()});
  // Ops of XLA are told their windows by their inputs.
  for (const Dims* d : {&p.strides, &p.dilations, &p.pad_before, &p.pad_after}) {
    key.insert(key.end(), d->begin(), d->end());
  }
  std::shared_ptr<const Primitive> plan;
  if (x.num_elements() > 0 && !plans_.Find(key, &plan)) {
    const Layout to = ConvOutputLayout(p);
    const auto fused = MakeFusedPostOps(fused_ops, to, 1);
    Layout bias;
    if (fused.bias) bias = Layout::Dense(Dtype::kFloat, std::array<int64_t, 1>{p.out_depth});
    auto made = Primitive::Convolution(ConvInputLayout(p),
                                       Layout::Chosen(Dtype::kFloat, FilterLayout(p).dims), bias,
                                       to, ConvWindow(p), fused.post_ops);
    if (!made.ok() && !absl::IsUnimplemented(made.status())) return made.status();
    if (made.ok()) plan = *std::move(made);
    plans_.Insert(key, plan);
  }
  if (plan == nullptr) {
    ConvPlain(p, x, w, out);
    nn::ApplyFusedOps(fused_ops, args, p.channels_last ? p.output.rank() - 1 : 1, out);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const Tensor packed,
                   weights_.Get(plan, FilterLayout(p), w, constant_filter, allocator));
  ASSIGN_OR_RETURN(const auto pointers, FusedPointers::Make(fused_ops, args, allocator));
  return plan->Run(pointers.Tensors(x.raw(), packed.raw(), out->raw()), allocator);
}

}  // namespace smelt::onednn
