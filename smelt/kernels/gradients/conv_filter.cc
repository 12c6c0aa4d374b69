// Gradients of convolutions for their filters, and both gradients of depthwise convolutions.
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/nn/conv_gradient.h"
#include "smelt/kernels/nn/conv_reference.h"
#include "smelt/kernels/onednn/conv_layout.h"
#include "smelt/kernels/onednn/plan_cache.h"

namespace smelt {
namespace {

struct ConvGradState final : KernelState {
  nn::ConvAttrs attrs;
  onednn::PlanCache plans;
};

// TensorFlow's CPU kernels refuse more here than those of the forward ops, and in other words.
Status CheckConvGradAttrs(const Node& node, int spatial) {
  const std::string format = node.String("data_format", spatial == 2 ? "NHWC" : "NDHWC");
  if (format == "NCHW") {
    return InvalidArgument("Conv2DCustomBackpropFilterOp only supports NHWC.");
  }
  if (format == "NCDHW") {
    return InvalidArgument("Conv3DBackpropFilterOpV2 only supports NDHWC on the CPU.");
  }
  const std::vector<int64_t> strides = node.Ints("strides");
  if (strides.size() != static_cast<size_t>(spatial + 2)) {
    return InvalidArgument("Sliding window strides field must specify ", spatial + 2,
                           " dimensions");
  }
  if (strides.front() != 1 || strides.back() != 1) {
    return InvalidArgument(
        "Current implementation does not yet support strides in the batch and depth dimensions.");
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> MakeConvGradState(const Node& node, int spatial) {
  RETURN_IF_ERROR(CheckConvGradAttrs(node, spatial));
  auto s = std::make_unique<ConvGradState>();
  ASSIGN_OR_RETURN(s->attrs, nn::ParseConvAttrs(node, spatial, false));
  for (const int64_t d : s->attrs.dilations) {
    if (d == 1) continue;
    return InvalidArgument("Current CPU implementation", spatial == 2 ? "s do" : " does",
                           " not yet support dilation rates larger than 1.");
  }
  return s;
}
StatusOr<std::unique_ptr<KernelState>> PrepareConvFilter2D(const Node& node) {
  return MakeConvGradState(node, 2);
}
StatusOr<std::unique_ptr<KernelState>> PrepareConvFilter3D(const Node& node) {
  return MakeConvGradState(node, 3);
}

Status ConvFilterFloat(ConvGradState& s, const nn::ConvProblem& p, const Tensor& input,
                       const Tensor& grad, Tensor* out, Allocator* allocator) {
  const auto build = [&] {
    const onednn::ConvLayouts l = onednn::MakeConvLayouts(p, Dtype::kFloat);
    return onednn::Primitive::ConvolutionWeightsGrad(l.src, l.dst, l.weights,
                                                     onednn::ConvWindow(p));
  };
  onednn::Plan plan;
  if (p.groups == 1) {
    const Shape kernel{std::span<const int64_t>(p.kernel)};
    ASSIGN_OR_RETURN(
        plan, s.plans.Get(onednn::MakePlanKey({&input.shape(), &grad.shape(), &kernel}), build));
  }
  if (plan == nullptr) {
    nn::ConvFilterReference(p, input, grad, out);
    return OkStatus();
  }
  const void* tensors[] = {input.raw(), grad.raw(), out->raw()};
  return plan->Run(tensors, allocator);
}

// Sums input * grad into output 0 of this shape, the 16-bit types in float.
Status ConvFilterGrad(OpContext& ctx, const nn::ConvProblem& p, const Shape& shape) {
  const Tensor& input = ctx.input(0);
  const Tensor& grad = ctx.input(2);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  if (input.num_elements() == 0 || grad.num_elements() == 0) {
    std::memset(out->raw(), 0, out->bytes());
    return OkStatus();
  }
  auto& s = ctx.state<ConvGradState>();
  Allocator* allocator = ctx.step().allocator;
  if (input.dtype() == Dtype::kDouble) {
    nn::ConvFilterReference(p, input, grad, out);
    return OkStatus();
  }
  if (input.dtype() == Dtype::kFloat) return ConvFilterFloat(s, p, input, grad, out, allocator);
  return ViaFloat({&input, &grad}, out, allocator, [&](std::span<const Tensor> in, Tensor* sum) {
    return ConvFilterFloat(s, p, in[0], in[1], sum, allocator);
  });
}

Status RunConvFilter2D(OpContext& ctx) {
  constexpr absl::string_view kOp = "Conv2DCustomBackpropFilter";
  const auto& s = ctx.state<ConvGradState>();
  const Shape& input = ctx.input(0).shape();
  const Shape& grad = ctx.input(2).shape();
  const Tensor& sizes = ctx.input(1);
  if (sizes.rank() != 1) {
    return InvalidArgument(kOp, ": filter_sizes input must be 1-dim, not ", sizes.rank());
  }
  ASSIGN_OR_RETURN(const Shape filter, CheckedShape(IntsOf(sizes)));
  if (input.rank() != 4) return InvalidArgument(kOp, ": input must be 4-dimensional");
  if (filter.rank() != 4) return InvalidArgument(kOp, ": filter must be 4-dimensional");
  if (grad.rank() != 4) return InvalidArgument(kOp, ": out_backprop must be 4-dimensional");
  ASSIGN_OR_RETURN(const nn::ConvProblem p,
                   nn::MakeConvGradientProblem(kOp, s.attrs, input, filter, grad));
  if (p.groups != 1) {
    const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };  // may wrap around
    return InvalidArgument("filter_size does not have enough elements, requested ",
                           size(filter[0]) * size(filter[1]) * size(p.in_depth) * size(p.out_depth),
                           ", got ", filter.num_elements());
  }
  return ConvFilterGrad(ctx, p, filter);
}

// V2 takes the filter's sizes; Conv3DBackpropFilter takes a tensor of its shape.
Status RunConvFilter3D(OpContext& ctx) {
  const auto& s = ctx.state<ConvGradState>();
  const Shape& input = ctx.input(0).shape();
  const Shape& grad = ctx.input(2).shape();
  Shape filter = ctx.input(1).shape();
  if (ctx.node().Is("Conv3DBackpropFilterV2")) {
    if (filter.rank() != 1) {
      return InvalidArgument("filter_sizes shape must be rank 1 but is rank ", filter.rank());
    }
    ASSIGN_OR_RETURN(filter, CheckedShape(IntsOf(ctx.input(1))));
  }
  RETURN_IF_ERROR(nn::CheckConv3DGradient(input, filter, grad, s.attrs.channels_last));
  ASSIGN_OR_RETURN(
      const nn::ConvProblem p,
      nn::MakeConvGradientProblem("Conv3DBackpropFilterOp", s.attrs, input, filter, grad));
  return ConvFilterGrad(ctx, p, filter);
}

// ---- depthwise ----

StatusOr<std::unique_ptr<KernelState>> PrepareDepthwiseGrad(const Node& node) {
  auto s = std::make_unique<ConvGradState>();
  ASSIGN_OR_RETURN(s->attrs, nn::ParseConvAttrs(node, 2, true));
  if (!s->attrs.channels_last) {
    return Unimplemented("Depthwise convolution on CPU is only supported for NHWC format");
  }
  return s;
}

StatusOr<Shape> DepthwiseSizes(const Tensor& sizes, absl::string_view op, absl::string_view what) {
  if (sizes.rank() != 1) {
    return InvalidArgument(op, ": ", what, " input must be 1-dim, not ", sizes.rank());
  }
  for (int64_t i = 0; i < sizes.num_elements(); ++i) {
    if (IndexAt(sizes, i) < 0) {
      return InvalidArgument("Dimension ", i, " of ", what, " must be >= 0");
    }
  }
  return CheckedShape(IntsOf(sizes));
}

StatusOr<nn::ConvProblem> DepthwiseGradProblem(absl::string_view op, const nn::ConvAttrs& attrs,
                                               const Shape& input, const Shape& filter,
                                               const Shape& grad) {
  if (input.rank() != 4) return InvalidArgument(op, ": input must be 4-dimensional");
  if (filter.rank() != 4) return InvalidArgument(op, ": filter must be 4-dimensional");
  if (grad.rank() != 4) return InvalidArgument(op, ": out_backprop must be 4-dimensional");
  if (input[0] != grad[0]) {
    return InvalidArgument(op, ": input and out_backprop must have the same batch size");
  }
  if (input[3] != filter[2]) {
    return InvalidArgument(op, ": input and filter must have the same in_depth");
  }
  ASSIGN_OR_RETURN(nn::ConvProblem p, nn::MakeConvProblem(attrs, input, filter));
  if (p.out_depth != grad[3]) {
    return InvalidArgument(op, ": depth_multiplier * in_depth not equal to out_depth");
  }
  for (int i = 0; i < 2; ++i) {
    if (p.out[i] == grad[1 + i]) continue;
    return InvalidArgument(op, ": Number of ", i == 0 ? "rows" : "cols",
                           " of out_backprop doesn't match computed: actual = ", grad[1 + i],
                           ", computed = ", p.out[i]);
  }
  return p;
}

Status RunDepthwiseFilter(OpContext& ctx) {
  ASSIGN_OR_RETURN(const Shape filter,
                   DepthwiseSizes(ctx.input(1), "Conv2DBackpropFilter", "filter_sizes"));
  ASSIGN_OR_RETURN(
      const nn::ConvProblem p,
      DepthwiseGradProblem("DepthwiseConv2DBackpropFilter", ctx.state<ConvGradState>().attrs,
                           ctx.input(0).shape(), filter, ctx.input(2).shape()));
  return ConvFilterGrad(ctx, p, filter);
}

Status RunDepthwiseInput(OpContext& ctx) {
  const Tensor& w = ctx.input(1);
  const Tensor& grad = ctx.input(2);
  ASSIGN_OR_RETURN(const Shape input,
                   DepthwiseSizes(ctx.input(0), "Conv2DBackpropInput", "input_sizes"));
  ASSIGN_OR_RETURN(const nn::ConvProblem p, DepthwiseGradProblem("DepthwiseConv2DBackpropInput",
                                                                 ctx.state<ConvGradState>().attrs,
                                                                 input, w.shape(), grad.shape()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, input));
  if (out->num_elements() == 0) return OkStatus();
  if (grad.num_elements() == 0 || w.num_elements() == 0) {
    std::memset(out->raw(), 0, out->bytes());
    return OkStatus();
  }
  if (grad.dtype() == Dtype::kDouble || grad.dtype() == Dtype::kFloat) {
    nn::ConvTransposeReference(p, grad, w, out);
    return OkStatus();
  }
  return ViaFloat({&grad, &w}, out, ctx.step().allocator,
                  [&](std::span<const Tensor> in, Tensor* sum) {
                    nn::ConvTransposeReference(p, in[0], in[1], sum);
                    return OkStatus();
                  });
}

constexpr DtypeSet kConvGradFast = Types(Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16);
constexpr DtypeSet kConvGradTypes = kFloatTypes | kHalfTypes;

constexpr Kernel kConvFilterTable[] = {
    {"Conv2DBackpropFilter", "T", kConvGradFast, "onednn:conv2d_filter_grad", RunConvFilter2D,
     PrepareConvFilter2D},
    {"Conv2DBackpropFilter", "T", Types(Dtype::kDouble), "reference:conv2d_filter_grad",
     RunConvFilter2D, PrepareConvFilter2D},
    {"Conv3DBackpropFilter", "T", Types(Dtype::kFloat, Dtype::kHalf), "onednn:conv3d_filter_grad",
     RunConvFilter3D, PrepareConvFilter3D},
    {"Conv3DBackpropFilter", "T", Types(Dtype::kDouble), "reference:conv3d_filter_grad",
     RunConvFilter3D, PrepareConvFilter3D},
    {"Conv3DBackpropFilterV2", "T", kConvGradFast, "onednn:conv3d_filter_grad", RunConvFilter3D,
     PrepareConvFilter3D},
    {"Conv3DBackpropFilterV2", "T", Types(Dtype::kDouble), "reference:conv3d_filter_grad",
     RunConvFilter3D, PrepareConvFilter3D},
    {"DepthwiseConv2dNativeBackpropFilter", "T", kConvGradTypes, "reference:depthwise_filter_grad",
     RunDepthwiseFilter, PrepareDepthwiseGrad},
    {"DepthwiseConv2dNativeBackpropInput", "T", kConvGradTypes, "reference:depthwise_input_grad",
     RunDepthwiseInput, PrepareDepthwiseGrad},
};

}  // namespace

extern constinit const std::span<const Kernel> kConvFilterKernels = kConvFilterTable;

}  // namespace smelt
