#include "smelt/kernels/lite/bind_int8.h"

#include <algorithm>
#include <cmath>

#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/lite/bind_layer.h"
#include "smelt/kernels/nn/depthwise_int8.h"
#include "smelt/kernels/onednn/features.h"

namespace smelt::lite {
namespace {

std::unique_ptr<BoundKernel> BindDepthwise(const nn::ConvProblem& p, const Int8Numbers& numbers,
                                           const Tensor& weights) {
  // Results are rounded before the zero point is added.
  const nn::DepthwiseInt8::Ends ends = {
      .low = static_cast<float>(numbers.range.low - numbers.out_zero),
      .high = static_cast<float>(numbers.range.high - numbers.out_zero),
      .behind = static_cast<int16_t>(numbers.out_zero)};
  const auto layer =
      std::make_shared<const nn::DepthwiseInt8>(p, weights, numbers.scales, numbers.in_zero, ends);
  return BindCall(
      [layer, p, start = layer->StartOf(numbers.bias, p.in_depth)](
          const void* const* in, void* const* out, void* scratch) {
        layer->Run(p, in[0], start.data(), out[0], static_cast<int8_t*>(scratch), {});
      },
      {}, nn::DepthwiseInt8::padding_bytes(p));
}

}  // namespace

StatusOr<std::unique_ptr<BoundKernel>> BindInt8(const nn::Int8Window& shape,
                                                const Int8Numbers& numbers, const Tensor& weights,
                                                nn::MatrixInt8& matrices) {
  // Of a factor that is no number results differ by what compares first.
  const bool scales = numbers.factors.empty() &&
                      std::ranges::all_of(numbers.scales, [](float s) { return std::isfinite(s); });
  if (scales && nn::MatrixInt8::Suits(shape)) {
    const nn::MatrixInt8::Rounded rounded = {
        numbers.scales, numbers.bias, static_cast<int8_t>(numbers.out_zero),
        static_cast<int8_t>(numbers.range.low), static_cast<int8_t>(numbers.range.high)};
    ASSIGN_OR_RETURN(auto own, matrices.Bind(shape, weights, numbers.in_zero, rounded));
    if (own != nullptr) return own;
  }
  if (scales && shape.depthwise && shape.units == shape.depth && Int8IsNative()) {
    const nn::ConvProblem p = shape.AsConv();
    if (nn::IsDepthwiseInt8(p)) return BindDepthwise(p, numbers, weights);
  }
  return BindLayer<int8_t>(
      std::make_shared<const Int8Layer>(shape, numbers, static_cast<const int8_t*>(weights.raw())));
}

}  // namespace smelt::lite
