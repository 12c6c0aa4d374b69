// TRANSPOSE_CONV of float numbers and int8 weights ("dynamic range"): images are quantized on the
// way, one by one, as XNNPACK does.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/lite/bind_layer.h"
#include "smelt/kernels/lite/layer_shape.h"
#include "smelt/kernels/lite/transposed_phases.h"

namespace smelt::lite {
namespace {

struct HybridTransposedState final : KernelState, LayerWindow {
  std::vector<float> scales;  // one, or one for each channel
  RealRange range;

  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
};

StatusOr<std::unique_ptr<BoundKernel>> HybridTransposedState::Bind(const BindContext& context) {
  const auto& inputs = context.inputs;
  HybridNumbers numbers;
  numbers.scales = scales;
  numbers.low = range.low;
  numbers.high = range.high;
  const Shape& output = context.outputs[0].shape;
  const int64_t units = output.rank() == 4 ? output[3] : 0;
  if (scales.size() != 1 && static_cast<int64_t>(scales.size()) != units) return nullptr;
  if (inputs.size() > 3 && inputs[3].shape.num_elements() != 0) {
    const Tensor* bias = inputs[3].constant;
    if (bias == nullptr) return DeclineToBind("its biases are not constant");
    if (bias->dtype() != Dtype::kFloat || bias->num_elements() != units) return nullptr;
    numbers.bias = bias->data<float>();
  }
  const auto bind = [&](const Image& /*image*/, const nn::Int8Window& window,
                        const Tensor& weights) -> StatusOr<std::unique_ptr<BoundKernel>> {
    return BindLayer<float>(
        std::make_shared<const Int8Layer>(window, numbers, weights.data<int8_t>()));
  };
  return BindPhases(*this, inputs, context.outputs[0], bind);
}

StatusOr<std::unique_ptr<KernelState>> PrepareHybridTransposed(const Node& node) {
  auto s = std::make_unique<HybridTransposedState>();
  ASSIGN_OR_RETURN(static_cast<LayerWindow&>(*s), LayerWindow::Of(node, LayerKind::kTransposed));
  s->scales = InputAffine(node, 1).scales;
  s->range = ActivatedReals(node);
  return s;
}

// Sums of one line of the output: those of the lines of the input whose windows reach it. m.in_*
// are sizes of the output, m.out_* of the input.
void SumsOfLine(const LayerWindow& s, const Image& m, int64_t units, const int16_t* steps,
                const int8_t* w, int64_t oy, int32_t* sums) {
  std::fill_n(sums, m.in_w * units, 0);
  for (int64_t ky = 0; ky < m.kernel_h; ++ky) {
    const int64_t from = oy + m.top - ky;
    if (from < 0 || from % s.stride_h != 0 || from / s.stride_h >= m.out_h) continue;
    const int16_t* line = steps + from / s.stride_h * m.out_w * m.depth;
    for (int64_t ix = 0; ix < m.out_w; ++ix) {
      const int16_t* x = line + ix * m.depth;
      for (int64_t kx = 0; kx < m.kernel_w; ++kx) {
        const int64_t ox = ix * s.stride_w - m.left + kx;
        if (ox < 0 || ox >= m.in_w) continue;
        for (int64_t u = 0; u < units; ++u) {
          const int8_t* q = w + ((u * m.kernel_h + ky) * m.kernel_w + kx) * m.depth;
          auto sum = static_cast<uint32_t>(sums[ox * units + u]);  // wraps around
          for (int64_t c = 0; c < m.depth; ++c) sum += static_cast<uint32_t>(int32_t{x[c]} * q[c]);
          sums[ox * units + u] = static_cast<int32_t>(sum);
        }
      }
    }
  }
}

Status RunHybridTransposed(OpContext& ctx) {
  const auto& s = ctx.state<HybridTransposedState>();
  const Tensor &sizes = ctx.input(0), &filter = ctx.input(1), &in = ctx.input(2);
  ASSIGN_OR_RETURN(const auto fitted, TransposedImageOf(s, sizes, in.shape(), filter.shape()));
  const Shape& shape = fitted.output;
  const Image& m = fitted.image;
  const int64_t units = shape[3];
  if (s.scales.size() != 1 && static_cast<int64_t>(s.scales.size()) != units) {
    return InvalidArgument("there are ", s.scales.size(), " scales for ", units, " channels");
  }
  const float* bias = nullptr;
  if (ctx.num_inputs() > 3 && ctx.input(3).num_elements() != 0) {
    const Tensor& b = ctx.input(3);
    if (b.dtype() != Dtype::kFloat || b.num_elements() != units) {
      return InvalidArgument("there are ", b.num_elements(), " biases of ", DtypeName(b.dtype()),
                             " for ", units, " channels");
    }
    bias = b.data<float>();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  const int64_t size = m.out_h * m.out_w * m.depth;
  ASSIGN_OR_RETURN(Tensor scratch, ctx.Temp(Dtype::kInt16, Shape({size})));
  const auto* w = static_cast<const int8_t*>(filter.raw());
  for (int64_t b = 0; b < m.batch; ++b) {
    const float* x = in.data<float>() + b * size;
    ExactInt8Steps h;
    if (size > 0) {
      IsaExactInt8().steps_of_rows(x, 1, size, &h);
      IsaExactInt8().steps_of(x, scratch.data<int16_t>(), size, h.inverse, h.low, h.high);
    }
    ParallelFor(m.in_h, 1, [&](int64_t begin, int64_t end) {
      std::vector<int32_t> sums(static_cast<size_t>(m.in_w * units));
      for (int64_t oy = begin; oy < end; ++oy) {
        SumsOfLine(s, m, units, scratch.data<int16_t>(), w, oy, sums.data());
        float* y = out->data<float>() + (b * m.in_h + oy) * m.in_w * units;
        for (int64_t i = 0; i < m.in_w * units; ++i) {
          const int64_t u = i % units;
          const float scale = s.scales[s.scales.size() == 1 ? 0 : static_cast<size_t>(u)];
          const float sum = static_cast<float>(sums[static_cast<size_t>(i)]) * h.scale * scale +
                            (bias != nullptr ? bias[u] : 0.0f);
          y[i] = std::clamp(sum, s.range.low, s.range.high);
        }
      }
    });
  }
  return OkStatus();
}

std::string DeclineHybridTransposed(const Node& node) {
  if (node.num_inputs() < 3) return "an input is missing";
  if (node.output_types[0] != Dtype::kFloat || node.input_types[2] != Dtype::kFloat) {
    return "its input and output are not float";
  }
  if (node.input_types[1] != Dtype::kInt8) {
    return absl::StrCat("its weights are ", DtypeName(node.input_types[1]));
  }
  const Affine w = InputAffine(node, 1);
  const auto is_zero = [](int64_t z) { return z == 0; };
  if (w.scales.empty() || w.block != 0 || !std::ranges::all_of(w.zeros, is_zero)) {
    return "its weights have no scales about 0";
  }
  return DeclineUnlessBounds(node);
}

constexpr Kernel kLiteHybridTransposedTable[] = {
    {"tfl.transpose_conv", "", kAnyType, "lite:hybrid_transpose_conv", RunHybridTransposed,
     PrepareHybridTransposed, DeclineHybridTransposed},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteHybridTransposedKernels =
    lite::kLiteHybridTransposedTable;
}  // namespace smelt
