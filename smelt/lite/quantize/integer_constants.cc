#include "smelt/lite/quantize/integer_constants.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/common/quantization.h"
#include "smelt/lite/quantize/agreed_scales.h"
#include "smelt/lite/quantize/quantized_ops.h"
#include "smelt/lite/quantize/weights.h"

namespace smelt {
namespace {

StatusOr<Endpoint> AddConstant(Graph& graph, const Node& like, const Tensor& value,
                               const std::vector<float>& scales, const std::vector<int64_t>& zeros,
                               int dim) {
  AttrMap attrs;
  attrs.Set("dtype", value.dtype());
  attrs.Set("value", value);
  SetQuantization(attrs, 0, {scales, zeros, dim});
  ASSIGN_OR_RETURN(
      Node * n, graph.Add(absl::StrCat(like.name(), "/quantized"), "Const", {}, std::move(attrs)));
  return Endpoint{n, 0};
}

// Are the operator's biases int32 beside int16? Kernels of DEPTHWISE_CONV_2D take int64 alone.
bool HasBias32(const Node& n, const IntegerFlags& flags) {
  return flags.int16 && flags.bias32 && n.Find("quantized_bias_type") != nullptr;
}

// By which biases take half of an int32, as TensorFlow's quantizer has it; none: they may take
// what they will.
std::vector<float> LeastScales(IntegerPlan& plan, const Node& n, const QuantizedOp& row,
                               const Tensor& weights) {
  if (!HasBias32(n, plan.flags) || row.bias >= n.num_inputs()) return {};
  const auto bias = ConstantTensor(*n.input(row.bias).node);
  if (!bias || bias->dtype() != Dtype::kFloat) return {};
  const double input = static_cast<double>(plan.ParamsAt(n.input(FirstActivation(n))).scale);
  const int dim = row.ScaledDimension(plan.flags);
  std::vector<float> out(static_cast<size_t>(dim < 0 ? 1 : weights.dim(dim)), 0.0f);
  for (int64_t i = 0; i < bias->num_elements(); ++i) {
    float& least = out[dim < 0 ? 0 : static_cast<size_t>(i)];
    const double size = std::abs(static_cast<double>(bias->data<float>()[i]));
    least = std::max(least, static_cast<float>(2 * size / (INT32_MAX * input)));
  }
  return out;
}

// Where training rounded, weights keep what they were rounded to.
StatusOr<QuantizedWeights> ValuesOf(const IntegerPlan& plan, const Tensor& value,
                                    const QuantizedOp& row, const std::vector<float>& least) {
  if (plan.flags.uint8) return QuantizeUint8(value, !plan.declared.empty());
  const int dim = row.ScaledDimension(plan.flags), bits = row.integer4 ? plan.flags.weight_bits : 8;
  if (!plan.declared.empty()) {
    if (plan.flags.low_bits && row.integer4) {
      if (auto q = OnGrid(value, dim, 4, true)) return *std::move(q);
    }
    if (auto q = OnGrid(value, dim, bits)) return *std::move(q);
  }
  return QuantizeWeights(value, dim, bits, least);
}

}  // namespace

Dtype BiasType(const Node& n, const IntegerFlags& flags) {
  return HasBias32(n, flags) ? Dtype::kInt32 : FormatOf(flags).bias;
}

Status CheckFinite(const Node& n, const Node& constant, const Tensor& value, bool has_range) {
  for (const float v : value.flat<float>()) {
    if (std::isfinite(v) || (v < 0 && has_range)) continue;
    return InvalidArgument("constant '", constant.name(), "', which operator '", n.name(), "' (",
                           OperatorName(n), ") reads, holds ", v);
  }
  return OkStatus();
}

StatusOr<Endpoint> QuantizedConstant(Graph& graph, const IntegerPlan& plan, const Node& n,
                                     Endpoint of, const Tensor& value, const Params* forced) {
  const Params p =
      forced != nullptr ? *forced : ParamsOf(plan.RangeOfConstant(of, value), plan.format);
  ASSIGN_OR_RETURN(const Tensor q, QuantizedTo(value, p, plan.format));
  return AddConstant(graph, n, q, {p.scale}, {p.zero}, 0);
}

StatusOr<ScaledWeights> WeightsOf(Graph& graph, IntegerPlan& plan, const Node& n,
                                  const Node& constant, const Tensor& value) {
  const QuantizedOp& row = *FindQuantizedOp(n.op_name());
  auto q = ValuesOf(plan, value, row, LeastScales(plan, n, row, value));
  if (!q.ok()) {
    return Prefix(q.status(), absl::StrCat("operator '", n.name(), "' (", OperatorName(n),
                                           "), constant '", constant.name(), "': "));
  }
  ASSIGN_OR_RETURN(const Endpoint made, AddConstant(graph, n, q->values, q->scales,
                                                    std::vector<int64_t>(q->scales.size(), q->zero),
                                                    row.ScaledDimension(plan.flags)));
  return ScaledWeights{made, std::move(q->scales)};
}

StatusOr<Endpoint> QuantizedBias(Graph& graph, const IntegerFlags& flags, const Node& n,
                                 const Tensor& bias, float input_scale,
                                 const std::vector<float>& weights) {
  const Dtype type = BiasType(n, flags);
  ASSIGN_OR_RETURN(Tensor q, Tensor::Make(type, bias.shape()));
  std::vector<float> scales;
  for (const float w : weights) scales.push_back(input_scale * w);
  for (int64_t i = 0; i < bias.num_elements(); ++i) {
    const double scale =
        static_cast<double>(scales[scales.size() == 1 ? 0 : static_cast<size_t>(i)]);
    const double at = std::round(static_cast<double>(bias.data<float>()[i]) / scale);
    if (type == Dtype::kInt32) {
      q.data<int32_t>()[i] = static_cast<int32_t>(std::clamp<double>(at, INT32_MIN, INT32_MAX));
    } else {
      q.data<int64_t>()[i] = static_cast<int64_t>(std::clamp(at, -9.2e18, 9.2e18));
    }
  }
  return AddConstant(graph, n, q, scales, std::vector<int64_t>(scales.size(), 0), 0);
}

}  // namespace smelt
