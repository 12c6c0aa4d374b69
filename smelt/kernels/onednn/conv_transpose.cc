// Conv2DBackpropInput and Conv3DBackpropInput(V2): the transposed convolutions of decoders.
#include <algorithm>
#include <span>

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/fusible.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/nn/conv_gradient.h"
#include "smelt/kernels/nn/conv_reference.h"
#include "smelt/kernels/nn/tiled_transpose.h"
#include "smelt/kernels/nn/via_floats.h"
#include "smelt/kernels/onednn/bound_layer.h"
#include "smelt/kernels/onednn/conv_layout.h"
#include "smelt/kernels/onednn/keep_nan.h"
#include "smelt/kernels/onednn/narrow_layer.h"

namespace smelt {
namespace {

constexpr DtypeSet kTransposeFast = Types(Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16);
constexpr DtypeSet kTransposePlain = Types(Dtype::kDouble, Dtype::kInt32);

struct ConvTransposeState final : FusibleState {
  StatusOr<std::unique_ptr<BoundKernel>> BindThen(const BindContext& context,
                                                  const FusedOps& then) override;

  nn::ConvAttrs attrs;
  std::string op;
  bool constant_filter = false;
  onednn::PlanCache plans;
  onednn::NarrowLayer narrow;
  nn::TiledTranspose tiled;
  onednn::FloatCopies wide_filter;
  onednn::ConstantIsModest modest_filter;
};

// The shape that input_sizes states. In two dimensions it may hold the spatial sizes only.
StatusOr<Shape> TransposeResultShape(const ConvTransposeState& s, const Tensor& sizes,
                                     const Shape& filter, const Shape& grad) {
  const bool planes = s.attrs.spatial == 3;
  const int rank = s.attrs.spatial + 2;
  if (sizes.rank() != 1) {
    if (planes) {
      return InvalidArgument("shape must be a vector of {int32,int64}, got shape ",
                             sizes.shape().ToString());
    }
    return InvalidArgument(s.op, ": input_sizes input must be 1-dim, not ", sizes.rank());
  }
  Dims dims;
  for (int64_t i = 0; i < sizes.num_elements(); ++i) {
    const int64_t size = IndexAt(sizes, i);
    if (size < 0) return InvalidArgument("Dimension ", size, " must be >= 0");
    dims.push_back(size);
  }
  if (planes) return Shape::Make(dims);
  if (grad.rank() != rank) {
    return InvalidArgument("input_sizes must be ", rank, "-dimensional, got: ", grad.rank());
  }
  const bool all = sizes.num_elements() == rank;
  if (!all && sizes.num_elements() != s.attrs.spatial) {
    return InvalidArgument(s.op, " requires input_sizes to contain ", rank, " values or ",
                           s.attrs.spatial, " values, but got: ", sizes.num_elements());
  }
  if (filter.rank() != rank) {
    return InvalidArgument("Conv2DCustomBackpropInput: filter must be 4-dimensional");
  }
  if (all) return Shape::Make(dims);
  return nn::ImageShape(grad[0], dims, filter[s.attrs.spatial], s.attrs.channels_last);
}

StatusOr<nn::ConvProblem> MakeTransposeProblem(const ConvTransposeState& s, const Shape& result,
                                               const Shape& filter, const Shape& grad) {
  const absl::string_view op =
      s.attrs.spatial == 2 ? "Conv2DCustomBackpropInput" : "Conv3DBackpropInputOp";
  ASSIGN_OR_RETURN(const nn::ConvProblem p,
                   nn::MakeConvGradientProblem(op, s.attrs, result, filter, grad));
  if (p.groups != 1) {
    return InvalidArgument(
        "Gradients for grouped convolutions are not supported on CPU. Please file a feature "
        "request if you run into this issue. Computed input depth ",
        p.in_depth, " doesn't match filter input depth ", p.filter_in);
  }
  return p;
}

StatusOr<std::unique_ptr<BoundKernel>> ConvTransposeState::BindThen(const BindContext& context,
                                                                    const FusedOps& then) {
  constexpr int kFilter = 1, kImage = 2, kInputs = 3;
  const BoundTensor &w = context.inputs[kFilter], &x = context.inputs[kImage];
  const Shape& result = context.outputs[0].shape;
  const Dtype dtype = x.dtype;
  const bool narrow = dtype == Dtype::kBfloat16;
  if (!constant_filter || w.constant == nullptr || w.dtype != dtype ||
      (dtype != Dtype::kFloat && !narrow)) {
    return DeclineToBind("the filter is no constant of floats");
  }
  // What the run will refuse is left to it.
  const auto p = MakeTransposeProblem(*this, result, w.shape, x.shape);
  if (!p.ok() || result.num_elements() == 0 || x.shape.num_elements() == 0 ||
      w.shape.num_elements() == 0) {
    return DeclineToBind("shapes that do not fit, or something is empty");
  }
  if (!nn::TiledTranspose::Suits(*p)) return DeclineToBind("the library does it");
  ASSIGN_OR_RETURN(const Tensor filter, wide_filter.Get(*w.constant, true, HeapAllocator()));
  if (!modest_filter(filter)) {
    return DeclineToBind("zeros beside the image would be multiplied by infinite weights");
  }
  const auto fits = [&](const BoundTensor& t) { return t.dtype == dtype; };
  const std::span<const BoundTensor> behind = context.inputs.subspan(kInputs);
  if (!std::ranges::all_of(behind, fits) ||
      !onednn::ArgumentsFit(then, behind, result, result.rank() - 1)) {
    return DeclineToBind("an operand of what follows has another shape");
  }
  std::vector<onednn::LayerArgument> args;
  std::vector<Tensor> constants;  // as floats
  for (int input = kInputs; input < kInputs + then.num_args; ++input) {
    args.push_back({nullptr, input});
    if (const Tensor* constant = context.inputs[static_cast<size_t>(input)].constant) {
      ASSIGN_OR_RETURN(Tensor wide, ToFloat(*constant, HeapAllocator()));
      args.back().constant = constants.emplace_back(std::move(wide)).raw();
    }
  }
  const auto [bias, addend] = onednn::OperandsOfTiles(then, args);
  ASSIGN_OR_RETURN(auto own, tiled.Bind(*p, filter, kImage, bias, addend, then));
  if (own == nullptr || !narrow) return own;
  std::vector<nn::WidenedInput> wide = {{kImage, x.shape.num_elements()}};
  if (addend >= 0) wide.push_back({addend, result.num_elements()});
  return nn::ViaFloats(std::move(own), std::move(wide), result.num_elements());
}

// call.x is the gradient of the forward convolution's result.
Status TransposeFloat(ConvTransposeState& s, const nn::ConvProblem& p,
                      const onednn::LayerCall& call) {
  const Tensor& grad = call.x;
  const Tensor& w = call.w;
  Tensor* out = call.out;
  const auto build = [&] {
    // For a deconvolution the library calls the depth of its result, the larger image, out.
    onednn::ConvLayouts l = onednn::MakeConvLayouts(p, Dtype::kFloat);
    std::swap(l.weights.dims[0], l.weights.dims[1]);
    std::swap(l.weights.strides[0], l.weights.strides[1]);
    return onednn::Primitive::Deconvolution(l.dst, l.weights, l.src, onednn::ConvWindow(p));
  };
  ASSIGN_OR_RETURN(
      const onednn::Plan plan,
      s.plans.Get(onednn::MakePlanKey({&grad.shape(), &w.shape(), &out->shape()}), build));
  if (plan == nullptr) {
    nn::ConvTransposeReference(p, grad, w, out);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const auto weights, s.plans.Weights(plan, w, call.constant_w, call.allocator));
  const void* tensors[] = {grad.raw(), weights->raw(), out->raw()};
  return plan->Run(tensors, call.allocator);
}

Status RunConvTranspose(OpContext& ctx) {
  auto& s = ctx.state<ConvTransposeState>();
  const Tensor& w = ctx.input(1);
  const Tensor& grad = ctx.input(2);
  // Conv3DBackpropInput takes the forward convolution's input, of which only the shape counts.
  Shape result = ctx.input(0).shape();
  if (s.op != "Conv3DBackpropInput") {
    ASSIGN_OR_RETURN(result, TransposeResultShape(s, ctx.input(0), w.shape(), grad.shape()));
  }
  if (s.attrs.spatial == 3) {
    RETURN_IF_ERROR(
        nn::CheckConv3DGradient(result, w.shape(), grad.shape(), s.attrs.channels_last));
  }
  ASSIGN_OR_RETURN(const nn::ConvProblem p,
                   MakeTransposeProblem(s, result, w.shape(), grad.shape()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, result));
  if (out->num_elements() == 0) return OkStatus();
  if (grad.num_elements() == 0 || w.num_elements() == 0) {
    std::memset(out->raw(), 0, out->bytes());
    return OkStatus();
  }
  if (Has(kTransposePlain, grad.dtype())) {
    nn::ConvTransposeReference(p, grad, w, out);
    return OkStatus();
  }
  const FusedOps none;
  const onednn::LayerCall call{grad, w, s.constant_filter, none, {}, out, ctx.step().allocator};
  if (grad.dtype() == Dtype::kFloat) return TransposeFloat(s, p, call);
  return s.narrow.Run(call, false,
                      [&](const onednn::LayerCall& wide) { return TransposeFloat(s, p, wide); });
}

StatusOr<std::unique_ptr<KernelState>> MakeTransposeState(const Node& node, int spatial) {
  auto s = std::make_unique<ConvTransposeState>();
  s->op = std::string(node.op());
  ASSIGN_OR_RETURN(s->attrs, nn::ParseConvAttrs(node, spatial, false));
  // In three dimensions TensorFlow dilates in V2 only, and only for float and bfloat16.
  const Dtype t = node.Type("T");
  const bool dilates = spatial == 2 || (s->op == "Conv3DBackpropInputV2" &&
                                        (t == Dtype::kFloat || t == Dtype::kBfloat16));
  for (const int64_t d : s->attrs.dilations) {
    if (d == 1 || dilates) continue;
    return InvalidArgument("Current CPU implementation does not yet support dilation rates larger ",
                           "than 1.");
  }
  s->constant_filter = onednn::InputIsConst(node, 1);
  return s;
}
StatusOr<std::unique_ptr<KernelState>> PrepareConvTranspose2D(const Node& node) {
  return MakeTransposeState(node, 2);
}
StatusOr<std::unique_ptr<KernelState>> PrepareConvTranspose3D(const Node& node) {
  return MakeTransposeState(node, 3);
}

constexpr Kernel kConvTransposeTable[] = {
    {"Conv2DBackpropInput", "T", kTransposeFast, "onednn:conv2d_transpose", RunConvTranspose,
     PrepareConvTranspose2D},
    {"Conv2DBackpropInput", "T", kTransposePlain, "reference:conv2d_transpose", RunConvTranspose,
     PrepareConvTranspose2D},
    {"Conv3DBackpropInputV2", "T", kTransposeFast, "onednn:conv3d_transpose", RunConvTranspose,
     PrepareConvTranspose3D},
    {"Conv3DBackpropInputV2", "T", Types(Dtype::kDouble), "reference:conv3d_transpose",
     RunConvTranspose, PrepareConvTranspose3D},
    {"Conv3DBackpropInput", "T", Types(Dtype::kFloat, Dtype::kHalf), "onednn:conv3d_transpose",
     RunConvTranspose, PrepareConvTranspose3D},
    {"Conv3DBackpropInput", "T", Types(Dtype::kDouble), "reference:conv3d_transpose",
     RunConvTranspose, PrepareConvTranspose3D},
};

}  // namespace

extern constinit const std::span<const Kernel> kConvTransposeKernels = kConvTransposeTable;

}  // namespace smelt
