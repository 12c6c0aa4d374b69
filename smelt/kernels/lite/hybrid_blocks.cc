// Products of float rows and int4 or int8 weights that have a scale for each block of a unit's
// weights ("blockwise"): rows are quantized on the way, as XNNPACK does.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/lite/layer_shape.h"
#include "smelt/tensor/float16.h"

namespace smelt::lite {
namespace {

struct BlockState final : KernelState, LayerWindow {
  std::vector<float> scales;  // by unit and block
  int64_t block = 1;
  RealRange range;
};

// As XNNPACK keeps a scale.
float BlockScale(float scale) { return static_cast<float>(Bfloat16(scale)); }

StatusOr<std::unique_ptr<KernelState>> PrepareBlocks(const Node& node) {
  auto s = std::make_unique<BlockState>();
  ASSIGN_OR_RETURN(static_cast<LayerWindow&>(*s), LayerWindow::Of(node, LayerKind::kDense));
  const Affine weights = InputAffine(node, 1);
  for (const float scale : weights.scales) s->scales.push_back(BlockScale(scale));
  s->block = weights.block;
  s->range = ActivatedReals(node);
  return s;
}

int64_t BlockDot(const int16_t* x, const int8_t* w, int64_t n) {
  // As many products of 9 and 8 bits as an int32 holds.
  constexpr int64_t kSafe = 1 << 15;
  int64_t all = 0;
  for (int64_t at = 0; at < n; at += kSafe) {
    const int64_t end = std::min(n, at + kSafe);
    int32_t sum = 0;
    for (int64_t k = at; k < end; ++k) sum += int32_t{x[k]} * w[k];
    all += sum;
  }
  return all;
}

Status RunBlocks(OpContext& ctx) {
  const auto& s = ctx.state<BlockState>();
  const Tensor &in = ctx.input(0), &weights = ctx.input(1);
  const Tensor none, &bias = ctx.num_inputs() > 2 ? ctx.input(2) : none;
  ASSIGN_OR_RETURN(const Shape output, LayerOutput(s, in.shape(), weights.shape()));
  const int64_t units = weights.dim(0), depth = weights.dim(1), blocks = depth / s.block;
  if (blocks * s.block != depth || static_cast<int64_t>(s.scales.size()) != units * blocks) {
    return InvalidArgument("there are ", s.scales.size(), " scales for weights of shape ",
                           weights.shape().ToString(), " in blocks of ", s.block);
  }
  const bool biased = bias.valid() && bias.num_elements() != 0;
  if (biased && (bias.dtype() != Dtype::kFloat || bias.num_elements() != units)) {
    return InvalidArgument("there are ", bias.num_elements(), " biases of ",
                           DtypeName(bias.dtype()), " for ", units, " units");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, output));
  if (out->num_elements() == 0) return OkStatus();
  const int64_t rows = out->num_elements() / units;
  ASSIGN_OR_RETURN(Tensor scratch, ctx.Temp(Dtype::kInt16, Shape({rows, depth})));
  ASSIGN_OR_RETURN(Tensor factors, ctx.Temp(Dtype::kFloat, Shape({rows})));
  auto* steps = scratch.data<int16_t>();
  auto* row_scales = factors.data<float>();
  ParallelFor(rows, std::max<int64_t>(1, (1 << 14) / depth), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = in.data<float>() + r * depth;
      ExactInt8Steps h;
      IsaExactInt8().steps_of_rows(x, 1, depth, &h);
      IsaExactInt8().steps_of(x, steps + r * depth, depth, h.inverse, h.low, h.high);
      row_scales[r] = h.scale;
    }
  });
  const auto* w = static_cast<const int8_t*>(weights.raw());
  float* y = out->data<float>();
  ParallelFor(
      units, std::max<int64_t>(1, (1 << 16) / (depth * rows)), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u) {
          const float* of_unit = s.scales.data() + u * blocks;
          for (int64_t r = 0; r < rows; ++r) {
            float sum = 0;
            for (int64_t b = 0; b < blocks; ++b) {
              const int64_t dot =
                  BlockDot(steps + r * depth + b * s.block, w + u * depth + b * s.block, s.block);
              sum += static_cast<float>(dot) * of_unit[b];
            }
            sum = sum * row_scales[r] + (biased ? bias.data<float>()[u] : 0.0f);
            y[r * units + u] = std::clamp(sum, s.range.low, s.range.high);
          }
        }
      });
  return OkStatus();
}

std::string DeclineBlocks(const Node& node) {
  if (node.num_inputs() < 2) return "an input is missing";
  if (InputAffine(node, 1).block <= 0) return "its weights have no scales of blocks";
  if (node.output_types[0] != Dtype::kFloat || node.input_types[0] != Dtype::kFloat) {
    return "its input and output are not float";
  }
  if (node.input_types[1] != Dtype::kInt8 && node.input_types[1] != Dtype::kInt4) {
    return absl::StrCat("its weights are ", DtypeName(node.input_types[1]));
  }
  if (std::string why = DeclineUnlessBounds(node); !why.empty()) return why;
  if (node.String("weights_format", "DEFAULT") != "DEFAULT") return "its weights are shuffled";
  return "";
}

constexpr Kernel kLiteBlockTable[] = {
    {"tfl.fully_connected", "", kAnyType, "lite:block_dense", RunBlocks, PrepareBlocks,
     DeclineBlocks},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteBlockKernels = lite::kLiteBlockTable;
}  // namespace smelt
