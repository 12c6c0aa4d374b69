// Convolutions: those of float and narrower floats through FloatConv, others in plain loops.
#include <algorithm>
#include <limits>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/common/constant_forms.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/dilates_window.h"
#include "smelt/kernels/fusible.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/onednn/bound_layer.h"
#include "smelt/kernels/onednn/float_conv.h"
#include "smelt/kernels/pads_input.h"
#include "smelt/kernels/scales_weights.h"

namespace smelt {
namespace {

constexpr DtypeSet kConvFast = Types(Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16);
constexpr DtypeSet kConvPlain = Types(Dtype::kDouble, Dtype::kInt32);

struct ConvState final : FusibleState, PadsInput, DilatesWindow, ScalesWeights {
  nn::ConvAttrs attrs;
  FusedOps fused;
  bool constant_filter = false;
  std::shared_ptr<onednn::FloatConv> conv = std::make_shared<onednn::FloatConv>();

  StatusOr<std::unique_ptr<BoundKernel>> BindThen(const BindContext& context,
                                                  const FusedOps& then) override;
  std::shared_ptr<KernelState> Padded(std::span<const int64_t> paddings) const override;
  std::shared_ptr<KernelState> Dilated(std::span<const int64_t> blocks,
                                       std::span<const int64_t> paddings) const override;
  int64_t ScaledChannels(const Tensor& weights) const override;
  StatusOr<Tensor> Scaled(const Tensor& weights, const Tensor& factors) const override;

  // By where the factors lie, which are kept.
  struct ScaledBy {
    Tensor factors;
    friend bool operator==(const ScaledBy& a, const ScaledBy& b) {
      return a.factors.raw() == b.factors.raw();
    }
  };
  std::shared_ptr<ConstantForms<ScaledBy>> scaled = std::make_shared<ConstantForms<ScaledBy>>();
};

nn::EmptyFilter EmptyFilterOf(const nn::ConvAttrs& attrs) {
  return attrs.depthwise      ? nn::EmptyFilter::kAlways
         : attrs.spatial == 3 ? nn::EmptyFilter::kNever
                              : nn::EmptyFilter::kForEmptyResult;
}

StatusOr<std::unique_ptr<BoundKernel>> ConvState::BindThen(const BindContext& context,
                                                           const FusedOps& then) {
  const auto p = nn::MakeConvProblem(attrs, context.inputs[0].shape, context.inputs[1].shape,
                                     EmptyFilterOf(attrs));
  // What the run will refuse is left to it.
  if (!p.ok() || !constant_filter || p->output.num_elements() == 0) {
    return DeclineToBind(constant_filter ? "shapes that do not fit, or an empty result"
                                         : "the filter is no constant");
  }
  // What follows goes along the last dimension.
  const auto is_bias = [](const FusedStep& s) { return s.kind == FusedStep::Kind::kBias; };
  if (!p->channels_last && std::ranges::any_of(then.steps, is_bias)) {
    return DeclineToBind("channels come first, and a bias would go along the last dimension");
  }
  if (!SlopesAgree(fused, then)) return DeclineToBind("two slopes of Relu and LeakyRelu");
  const JoinedSteps steps = JoinSteps(fused, then, context, p->output);
  const BindContext joined{context.node, steps.inputs, context.outputs};
  if (!onednn::ArgumentsFit(steps.ops, joined.inputs.subspan(2), p->output,
                            p->channels_last ? p->output.rank() - 1 : 1)) {
    return DeclineToBind("an operand of what follows has another shape");
  }
  return conv->Bind(*p, joined, steps.ops);
}

Status RunConv(OpContext& ctx) {
  auto& state = ctx.state<ConvState>();
  const Tensor& x = ctx.input(0);
  const Tensor& w = ctx.input(1);
  ASSIGN_OR_RETURN(const nn::ConvProblem p, nn::MakeConvProblem(state.attrs, x.shape(), w.shape(),
                                                                EmptyFilterOf(state.attrs)));
  if (ctx.num_inputs() < 2 + state.fused.num_args) {
    return InvalidArgument("fused convolution needs ", state.fused.num_args, " arguments");
  }
  nn::WidenedArgs args;
  for (int i = 0; i < state.fused.num_args; ++i) args.push_back(&ctx.input(2 + i));
  const int depth_dim = p.channels_last ? p.output.rank() - 1 : 1;
  RETURN_IF_ERROR(nn::CheckFusedArgs(state.fused, args, p.output, depth_dim));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, p.output));
  if (out->num_elements() == 0) return OkStatus();
  if (!Has(kConvPlain, x.dtype())) {
    return state.conv->Run(p, x, w, state.constant_filter, state.fused, args, out,
                           ctx.step().allocator);
  }
  onednn::ConvPlain(p, x, w, out);
  nn::ApplyFusedOps(state.fused, args, depth_dim, out);
  return OkStatus();
}

// Is argument i a tensor of the result's shape?
bool IsWhole(const FusedOps& fused, int i) {
  return std::ranges::any_of(fused.steps, [&](const FusedStep& s) {
    return s.kind == FusedStep::Kind::kAdd && s.arg == i;
  });
}

// Are these the paddings, two for each dimension, of an image alone?
bool PadsImage(std::span<const int64_t> pads, const nn::ConvAttrs& attrs) {
  const size_t rank = static_cast<size_t>(attrs.spatial) + 2;
  const size_t depth = attrs.channels_last ? rank - 1 : 1;
  bool fits = pads.size() == 2 * rank;
  for (size_t i = 0; fits && i < pads.size(); ++i) {
    const bool image = i / 2 != 0 && i / 2 != depth;
    // A window of a convolution is no larger either (SpanOf).
    fits = pads[i] >= 0 && pads[i] <= (image ? std::numeric_limits<int32_t>::max() : 0);
  }
  return fits;
}

std::shared_ptr<KernelState> ConvState::Padded(std::span<const int64_t> paddings) const {
  if (attrs.padding == nn::Padding::kSame || !PadsImage(paddings, attrs)) return nullptr;
  auto padded = std::make_shared<ConvState>(*this);
  const auto spatial = static_cast<size_t>(attrs.spatial);
  const size_t first = attrs.channels_last ? 1 : 2;
  for (Dims* pads : {&padded->attrs.pad_before, &padded->attrs.pad_after}) {
    if (attrs.padding == nn::Padding::kValid) pads->assign(spatial, 0);
  }
  padded->attrs.padding = nn::Padding::kExplicit;
  for (size_t i = 0; i < spatial; ++i) {
    padded->attrs.pad_before[i] += paddings[2 * (first + i)];
    padded->attrs.pad_after[i] += paddings[2 * (first + i) + 1];
  }
  return padded;
}

std::shared_ptr<KernelState> ConvState::Dilated(std::span<const int64_t> blocks,
                                                std::span<const int64_t> paddings) const {
  // Of a padded part every part would be padded.
  const auto pads = [](const Dims& d) {
    return std::ranges::any_of(d, [](int64_t n) { return n != 0; });
  };
  const bool padded =
      attrs.padding == nn::Padding::kExplicit && (pads(attrs.pad_before) || pads(attrs.pad_after));
  const auto spatial = static_cast<size_t>(attrs.spatial);
  const size_t first = attrs.channels_last ? 1 : 2;
  if (padded || blocks.size() != spatial + 2) return nullptr;
  auto state = Padded(paddings);
  if (state == nullptr) return nullptr;
  Dims& dilations = static_cast<ConvState&>(*state).attrs.dilations;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const bool image = i >= first && i < first + spatial;
    if (blocks[i] != 1 && (!image || attrs.strides[i - first] != 1)) return nullptr;
    if (!image) continue;
    // A window is no larger than a dimension may be.
    if (blocks[i] > std::numeric_limits<int32_t>::max() / dilations[i - first]) return nullptr;
    dilations[i - first] *= blocks[i];
  }
  return state;
}

int64_t ConvState::ScaledChannels(const Tensor& weights) const {
  if (!fused.empty() || !attrs.channels_last || weights.rank() < 2) return 0;
  const int64_t last = weights.shape().back();
  return attrs.depthwise ? weights.dim(weights.rank() - 2) * last : last;
}

StatusOr<Tensor> ConvState::Scaled(const Tensor& weights, const Tensor& factors) const {
  const auto scale = [&](Allocator* allocator) -> StatusOr<Tensor> {
    ASSIGN_OR_RETURN(Tensor to, Tensor::Make(Dtype::kFloat, weights.shape(), allocator));
    const IsaBinaryFn mul =
        Isa().binary[static_cast<int>(IsaBinary::kMul)][static_cast<int>(IsaType::kF32)].vv;
    const int64_t n = factors.num_elements();
    for (int64_t i = 0; i < weights.num_elements(); i += n) {
      mul(weights.data<float>() + i, factors.raw(), to.data<float>() + i, n);
    }
    return to;
  };
  ASSIGN_OR_RETURN(const auto made,
                   scaled->Get(weights, ScaledBy{factors}, true, KeptAllocator(), scale));
  return *made;
}

// The paddings of a Pad that stood before the convolution, two for each dimension.
Status PadBefore(const Node& node, const std::vector<int64_t>& pads, nn::ConvAttrs* attrs) {
  const size_t rank = static_cast<size_t>(attrs->spatial) + 2;
  if (!PadsImage(pads, *attrs) || node.String("padding") != "VALID") {
    return InvalidArgument("padding_list must have ", 2 * rank, " numbers that are not negative, ",
                           "0 for batch and channels, and go with padding VALID");
  }
  attrs->padding = nn::Padding::kExplicit;
  const size_t first = attrs->channels_last ? 1 : 2;
  for (size_t i = first; i < first + rank - 2; ++i) {
    attrs->pad_before.push_back(pads[2 * i]);
    attrs->pad_after.push_back(pads[2 * i + 1]);
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> MakeConvState(const Node& node, int spatial, bool depthwise,
                                                     absl::string_view fused) {
  auto state = std::make_unique<ConvState>();
  ASSIGN_OR_RETURN(state->attrs, nn::ParseConvAttrs(node, spatial, depthwise));
  if (!fused.empty()) {
    // A Conv3D may have nothing fused but a Pad.
    const std::vector<int64_t> pads = node.Ints("padding_list");
    if (!pads.empty()) RETURN_IF_ERROR(PadBefore(node, pads, &state->attrs));
    if (pads.empty() || !node.Get<std::vector<std::string>>("fused_ops", {}).empty()) {
      ASSIGN_OR_RETURN(state->fused, ParseFusedOps(node, fused));
    }
    if (node.String("filter_format", "HWIO") != "HWIO") {
      return Unimplemented("Fused ", fused, " takes filters of format HWIO, not ",
                           node.String("filter_format"));
    }
    for (size_t i = 2; i < node.input_types.size(); ++i) {
      if (i >= 2 + static_cast<size_t>(state->fused.num_args)) break;
      // Beside a 16-bit input they may be float, as statistics are.
      const Dtype t = node.input_types[0];
      const bool wide =
          node.input_types[i] == Dtype::kFloat && (t == Dtype::kHalf || t == Dtype::kBfloat16);
      if (node.input_types[i] != t && !wide) {
        return InvalidArgument("Fused ", fused, " needs arguments of the input's type");
      }
    }
  }
  state->constant_filter = onednn::InputIsConst(node, 1);
  bool constant_args = true;
  for (int i = 0; i < state->fused.num_args; ++i) {
    // Sums with whole tensors are never folded.
    constant_args &= onednn::InputIsConst(node, 2 + i) || IsWhole(state->fused, i);
  }
  state->conv->SetConstantArgs(constant_args);
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
StatusOr<std::unique_ptr<KernelState>> PrepareFusedConv3D(const Node& node) {
  return MakeConvState(node, 3, false, "Conv3D");
}
StatusOr<std::unique_ptr<KernelState>> PrepareFusedDepthwise(const Node& node) {
  return MakeConvState(node, 2, true, "DepthwiseConv2dNative");
}

constexpr Kernel kConvTable[] = {
    {"Conv2D", "T", kConvFast, "onednn:conv2d", RunConv, PrepareConv2D},
    {"Conv2D", "T", kConvPlain, "reference:conv2d", RunConv, PrepareConv2D},
    {"_FusedConv2D", "T", kConvFast, "onednn:fused_conv2d", RunConv, PrepareFusedConv2D},
    {"_FusedConv2D", "T", Types(Dtype::kDouble), "reference:fused_conv2d", RunConv,
     PrepareFusedConv2D},
    {"Conv3D", "T", kConvFast, "onednn:conv3d", RunConv, PrepareConv3D},
    {"Conv3D", "T", Types(Dtype::kDouble), "reference:conv3d", RunConv, PrepareConv3D},
    {"_FusedConv3D", "T", kConvFast, "onednn:fused_conv3d", RunConv, PrepareFusedConv3D},
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
