// Layers of float numbers and int8 weights ("dynamic range"): numbers are quantized on the way, as
// XNNPACK does, which runs them in TensorFlow Lite by default but for depthwise ones.
#include "absl/strings/str_cat.h"
#include "smelt/kernels/common/small_cache.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/lite/bind_layer.h"
#include "smelt/kernels/lite/layer_shape.h"

namespace smelt::lite {
namespace {

// Convolutions with windows of one pixel, each of them, are products of pixels, which XNNPACK
// quantizes pixel by pixel.
bool IsProduct(const nn::Int8Window& s) {
  return !s.depthwise && s.groups == 1 && s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 &&
         s.stride_w == 1;
}

struct HybridState final : KernelState, LayerWindow {
  std::vector<float> scales;
  bool int4 = false, about_zero = false;
  RealRange range;

  // The last layers that ran; their tensors keep the addresses that tell them apart.
  struct Made {
    Tensor weights, bias;
    Shape in;
    std::shared_ptr<const Int8Layer> layer;
  };
  SmallCache<Made, 2, 2> made;

  // INVALID_ARGUMENT where the tensors do not fit. `bias` may have no elements.
  StatusOr<std::shared_ptr<const Int8Layer>> Make(const Shape& in, const Tensor& weights,
                                                  const Tensor* bias) const {
    auto shape = Int8ShapeOf(*this, in, weights.shape());
    if (!shape) return Unimplemented("windows over an image of shape ", in.ToString());
    HybridNumbers numbers;
    // XNNPACK has no convolutions of int4: TensorFlow Lite's own quantizes image by image.
    numbers.by_row = kind == LayerKind::kDense || (IsProduct(*shape) && !int4);
    if (numbers.by_row) {
      shape->in_w = shape->out_w = shape->outputs();
      shape->batch = shape->in_h = shape->out_h = 1;
    }
    if (scales.size() != 1 && static_cast<int64_t>(scales.size()) != shape->units) {
      return InvalidArgument("there are ", scales.size(), " scales for ", shape->units,
                             " channels");
    }
    if (bias != nullptr && bias->num_elements() != 0) {
      if (bias->dtype() != Dtype::kFloat || bias->num_elements() != shape->units) {
        return InvalidArgument("there are ", bias->num_elements(), " biases of ",
                               DtypeName(bias->dtype()), " for ", shape->units, " channels");
      }
      numbers.bias = bias->data<float>();
    }
    numbers.about_zero = about_zero;
    numbers.scales = scales;
    numbers.low = range.low;
    numbers.high = range.high;
    return std::make_shared<const Int8Layer>(*shape, numbers,
                                             static_cast<const int8_t*>(weights.raw()));
  }

  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override {
    const auto& inputs = context.inputs;
    if (inputs[1].constant == nullptr) return DeclineToBind("its weights are not constant");
    if (inputs.size() > 2 && inputs[2].constant == nullptr) {
      return DeclineToBind("its biases are not constant");
    }
    auto layer = Make(inputs[0].shape, *inputs[1].constant,
                      inputs.size() > 2 ? inputs[2].constant : nullptr);
    const auto output = LayerOutput(*this, inputs[0].shape, inputs[1].shape);
    // A run words what is wrong.
    if (!layer.ok() || !output.ok() || !(*output == context.outputs[0].shape)) return nullptr;
    return BindLayer<float>(*std::move(layer));
  }
};

template <LayerKind kKind>
StatusOr<std::unique_ptr<KernelState>> PrepareHybrid(const Node& node) {
  auto s = std::make_unique<HybridState>();
  ASSIGN_OR_RETURN(static_cast<LayerWindow&>(*s), LayerWindow::Of(node, kKind));
  s->scales = InputAffine(node, 1).scales;
  s->int4 = node.input_types[1] == Dtype::kInt4;
  // XNNPACK takes no odd rows of int4. TensorFlow Lite's own kernels then know steps about 0,
  // unless asked for others or, of convolutions, where each channel has a scale.
  s->about_zero = s->int4 && (kKind == LayerKind::kDense
                                  ? !node.Bool("asymmetric_quantize_inputs") && HasOddRows(node, 1)
                                  : s->scales.size() == 1);
  s->range = ActivatedReals(node);
  return s;
}

Status RunHybrid(OpContext& ctx) {
  auto& s = ctx.state<HybridState>();
  const Tensor &in = ctx.input(0), &weights = ctx.input(1);
  const Tensor none, &bias = ctx.num_inputs() > 2 ? ctx.input(2) : none;
  ASSIGN_OR_RETURN(const Shape output, LayerOutput(s, in.shape(), weights.shape()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, output));
  if (out->num_elements() == 0) return OkStatus();
  const auto same = [&](const HybridState::Made& m) {
    return m.weights.raw() == weights.raw() && m.in == in.shape() &&
           m.weights.shape() == weights.shape() &&
           (bias.valid() ? m.bias.valid() && m.bias.raw() == bias.raw() : !m.bias.valid());
  };
  // Weights that are computed anew may lie where others did.
  std::shared_ptr<const Int8Layer> layer;
  if (ctx.node().input(1).node->Is("Const")) {
    ASSIGN_OR_RETURN(const auto made, s.made.FindOrMake(same, [&]() -> StatusOr<HybridState::Made> {
      ASSIGN_OR_RETURN(auto one, s.Make(in.shape(), weights, bias.valid() ? &bias : nullptr));
      return HybridState::Made{weights, bias, in.shape(), std::move(one)};
    }));
    layer = made->layer;
  } else {
    ASSIGN_OR_RETURN(layer, s.Make(in.shape(), weights, bias.valid() ? &bias : nullptr));
  }
  ASSIGN_OR_RETURN(Tensor scratch,
                   ctx.Temp(Dtype::kInt8, Shape({static_cast<int64_t>(layer->scratch_bytes())})));
  layer->Run(in.data<float>(), out->data<float>(), scratch.data<int8_t>());
  return OkStatus();
}

std::string DeclineHybrid(const Node& node) {
  if (node.num_inputs() < 2) return "an input is missing";
  if (node.output_types[0] != Dtype::kFloat || node.input_types[0] != Dtype::kFloat) {
    return "its input and output are not float";
  }
  if (node.input_types[1] != Dtype::kInt8 && node.input_types[1] != Dtype::kInt4) {
    return absl::StrCat("its weights are ", DtypeName(node.input_types[1]));
  }
  const Affine w = InputAffine(node, 1);
  const auto is_zero = [](int64_t z) { return z == 0; };
  if (w.block != 0) return "its weights have scales of blocks";
  if (w.scales.empty() || !std::ranges::all_of(w.zeros, is_zero)) {
    return "its weights have no scales about 0";
  }
  if (std::string why = DeclineUnlessBounds(node); !why.empty()) return why;
  if (node.String("weights_format", "DEFAULT") != "DEFAULT") return "its weights are shuffled";
  return "";
}

constexpr Kernel kLiteHybridTable[] = {
    {"tfl.conv_2d", "", kAnyType, "lite:hybrid_conv", RunHybrid, PrepareHybrid<LayerKind::kConv>,
     DeclineHybrid},
    {"tfl.depthwise_conv_2d", "", kAnyType, "lite:hybrid_depthwise", RunHybrid,
     PrepareHybrid<LayerKind::kDepthwise>, DeclineHybrid},
    {"tfl.fully_connected", "", kAnyType, "lite:hybrid_dense", RunHybrid,
     PrepareHybrid<LayerKind::kDense>, DeclineHybrid},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteHybridKernels = lite::kLiteHybridTable;
}  // namespace smelt
