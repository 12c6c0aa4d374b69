// Convolutions through oneDNN. Activations keep the graph's plain layout; weights take the layout
// that the library likes best, once where they are constant.
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/nn/conv_reference.h"
#include "smelt/kernels/nn/fused.h"
#include "smelt/kernels/nn/via_float.h"
#include "smelt/kernels/onednn/fused_post_ops.h"
#include "smelt/kernels/onednn/plan_cache.h"

namespace smelt {
namespace {

using onednn::Layout;
using onednn::Primitive;

struct ConvState final : KernelState {
  nn::ConvAttrs attrs;
  nn::FusedOps fused;
  bool constant_filter = false;
  onednn::PlanCache plans;
  onednn::WeightCache weights;
};

struct ConvLayouts {
  Layout src, weights, dst;
};

// The filter as it lies in TensorFlow, with oneDNN's logical order: (groups,) out, in, spatial.
ConvLayouts MakeConvLayouts(const nn::ConvProblem& p) {
  ConvLayouts l;
  l.src = Layout::Image(Dtype::kFloat, p.batch, p.in_depth, p.in, p.channels_last);
  l.dst = Layout::Image(Dtype::kFloat, p.batch, p.out_depth, p.out, p.channels_last);
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

onednn::Window ConvWindow(const nn::ConvProblem& p) {
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

// Float tensors of checked shapes, a non-empty result.
Status ConvFloat(ConvState& state, const nn::ConvProblem& p, const Tensor& x, const Tensor& w,
                 nn::FusedArgs args, bool constant_filter, Tensor* out, Allocator* allocator) {
  const onednn::PlanKey key = onednn::MakePlanKey({&x.shape(), &w.shape()});
  std::shared_ptr<const Primitive> plan;
  if (x.num_elements() > 0 && !state.plans.Find(key, &plan)) {
    const ConvLayouts l = MakeConvLayouts(p);
    const auto fused = onednn::MakeFusedPostOps(state.fused, l.dst, 1);
    Layout bias;
    if (fused.bias) bias = Layout::Dense(Dtype::kFloat, std::array<int64_t, 1>{p.out_depth});
    auto made = Primitive::Convolution(l.src, Layout::Chosen(Dtype::kFloat, l.weights.dims), bias,
                                       l.dst, ConvWindow(p), fused.post_ops);
    if (!made.ok() && !absl::IsUnimplemented(made.status())) return made.status();
    if (made.ok()) plan = *std::move(made);
    state.plans.Insert(key, plan);
  }
  if (plan == nullptr) {
    ConvPlain(p, x, w, out);
    nn::ApplyFusedOps(state.fused, args, p.channels_last ? p.output.rank() - 1 : 1, out);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const Tensor packed, state.weights.Get(plan, MakeConvLayouts(p).weights, w,
                                                          constant_filter, allocator));
  ASSIGN_OR_RETURN(const auto pointers, onednn::FusedPointers::Make(state.fused, args, allocator));
  return plan->Run(pointers.Tensors(x.raw(), packed.raw(), out->raw()), allocator);
}

Status RunConv(OpContext& ctx) {
  auto& state = ctx.state<ConvState>();
  const Tensor& x = ctx.input(0);
  const Tensor& w = ctx.input(1);
  ASSIGN_OR_RETURN(const nn::ConvProblem p, nn::MakeConvProblem(state.attrs, x.shape(), w.shape()));
  if (ctx.num_inputs() < 2 + state.fused.num_args) {
    return InvalidArgument("fused convolution needs ", state.fused.num_args, " arguments");
  }
  absl::InlinedVector<const Tensor*, 6> args;
  for (int i = 0; i < state.fused.num_args; ++i) args.push_back(&ctx.input(2 + i));
  const int depth_dim = p.channels_last ? p.output.rank() - 1 : 1;
  RETURN_IF_ERROR(nn::CheckFusedArgs(state.fused, args, p.output, depth_dim));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, p.output));
  if (out->num_elements() == 0) return OkStatus();
  Allocator* allocator = ctx.step().allocator;
  const Dtype dtype = x.dtype();
  if (dtype == Dtype::kFloat) {
    return ConvFloat(state, p, x, w, args, state.constant_filter, out, allocator);
  }
  if (dtype == Dtype::kDouble || dtype == Dtype::kInt32) {
    ConvPlain(p, x, w, out);
    nn::ApplyFusedOps(state.fused, args, depth_dim, out);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const Tensor xf, nn::ToFloat(x, allocator));
  ASSIGN_OR_RETURN(const Tensor wf, nn::ToFloat(w, allocator));
  std::vector<Tensor> float_args(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    ASSIGN_OR_RETURN(float_args[i], nn::ToFloat(*args[i], allocator));
    args[i] = &float_args[i];
  }
  ASSIGN_OR_RETURN(Tensor result, Tensor::Make(Dtype::kFloat, p.output, allocator));
  RETURN_IF_ERROR(ConvFloat(state, p, xf, wf, args, false, &result, allocator));
  ASSIGN_OR_RETURN(*out, nn::FromFloat(result, dtype, allocator));
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> MakeConvState(const Node& node, int spatial, bool depthwise,
                                                     absl::string_view fused) {
  auto state = std::make_unique<ConvState>();
  ASSIGN_OR_RETURN(state->attrs, nn::ParseConvAttrs(node, spatial, depthwise));
  if (!fused.empty()) {
    ASSIGN_OR_RETURN(state->fused, nn::ParseFusedOps(node, fused));
    if (node.String("filter_format", "HWIO") != "HWIO") {
      return Unimplemented("Fused ", fused, " takes filters of format HWIO, not ",
                           node.String("filter_format"));
    }
    for (size_t i = 2; i < node.input_types.size(); ++i) {
      if (i < 2 + static_cast<size_t>(state->fused.num_args) &&
          node.input_types[i] != node.input_types[0]) {
        return InvalidArgument("Fused ", fused, " needs arguments of the input's type");
      }
    }
  }
  state->constant_filter = onednn::InputIsConst(node, 1);
  return state;
}

StatusOr<std::unique_ptr<KernelState>> PrepareConv2D(const Node& node) {
  return MakeConvState(node, 2, false, "");
}
StatusOr<std::unique_ptr<KernelState>> PrepareConv3D(const Node& node) {
  return MakeConvState(node, 3, false, "");
}
StatusOr<std::unique_ptr<KernelState>> PrepareDepthwise(const Node& node) {
  return MakeConvState(node, 2, true, "");
}
StatusOr<std::unique_ptr<KernelState>> PrepareFusedConv2D(const Node& node) {
  return MakeConvState(node, 2, false, "Conv2D");
}
StatusOr<std::unique_ptr<KernelState>> PrepareFusedDepthwise(const Node& node) {
  return MakeConvState(node, 2, true, "DepthwiseConv2dNative");
}

constexpr DtypeSet kConvFast = Types(Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16);
constexpr DtypeSet kConvPlain = Types(Dtype::kDouble, Dtype::kInt32);

constexpr Kernel kConvTable[] = {
    {"Conv2D", "T", kConvFast, "onednn:conv2d", RunConv, PrepareConv2D},
    {"Conv2D", "T", kConvPlain, "reference:conv2d", RunConv, PrepareConv2D},
    {"_FusedConv2D", "T", kConvFast, "onednn:fused_conv2d", RunConv, PrepareFusedConv2D},
    {"_FusedConv2D", "T", Types(Dtype::kDouble), "reference:fused_conv2d", RunConv,
     PrepareFusedConv2D},
    {"Conv3D", "T", kConvFast, "onednn:conv3d", RunConv, PrepareConv3D},
    {"Conv3D", "T", Types(Dtype::kDouble), "reference:conv3d", RunConv, PrepareConv3D},
    {"DepthwiseConv2dNative", "T", kConvFast, "onednn:depthwise_conv2d", RunConv, PrepareDepthwise},
    {"DepthwiseConv2dNative", "T", Types(Dtype::kDouble), "reference:depthwise_conv2d", RunConv,
     PrepareDepthwise},
    {"_FusedDepthwiseConv2dNative", "T", kConvFast, "onednn:fused_depthwise_conv2d", RunConv,
     PrepareFusedDepthwise},
    {"_FusedDepthwiseConv2dNative", "T", Types(Dtype::kDouble), "reference:fused_depthwise_conv2d",
     RunConv, PrepareFusedDepthwise},
};

}  // namespace

extern constinit const std::span<const Kernel> kConvKernels = kConvTable;

}  // namespace smelt
