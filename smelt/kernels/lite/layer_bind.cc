// Layers of int8 and of int16 whose shapes and weights are known.
#include <algorithm>

#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/lite/bind_int8.h"
#include "smelt/kernels/lite/bind_layer.h"
#include "smelt/kernels/lite/layer_state.h"
#include "smelt/kernels/lite/transposed_phases.h"

namespace smelt::lite {
namespace {

// A bound kernel that keeps what its packed weights lie in.
template <typename Kept>
std::unique_ptr<BoundKernel> BindKeeping(std::shared_ptr<Kept> kept,
                                         std::shared_ptr<const BoundKernel> kernel) {
  const size_t scratch = kernel->scratch_bytes();
  return BindCall([kept = std::move(kept), kernel = std::move(kernel)](
                      const void* const* in, void* const* out,
                      void* memory) { return kernel->Run(in, out, memory); },
                  {}, scratch);
}

std::unique_ptr<BoundKernel> BindInt16(const nn::Int8Window& shape, const Int16Numbers& numbers,
                                       const Tensor& weights) {
  return BindLayer<int16_t>(std::make_shared<const Int16Layer>(
      shape, numbers, static_cast<const int8_t*>(weights.raw())));
}

}  // namespace

// Units on which the tensors do not agree are worded by a run: nullptr.
StatusOr<std::unique_ptr<BoundKernel>> LayerState::Bind(const BindContext& context) {
  const auto& inputs = context.inputs;
  const auto at = [&](int i) -> const BoundTensor& { return inputs[static_cast<size_t>(i)]; };
  const BoundTensor& filter = at(places().weights);
  const Dtype numbers_of = at(places().input).dtype;
  const bool wide = numbers_of == Dtype::kInt16;
  if (!wide && numbers_of != Dtype::kInt8) {
    return DeclineToBind("its numbers are neither int8 nor int16");
  }
  if (filter.constant == nullptr) return DeclineToBind("its weights are not constant");
  if (std::ranges::any_of(weight_zeros, [](int32_t z) { return z != 0; })) {
    return DeclineToBind("its weights have a zero point");
  }
  if (filter.shape.rank() == 0) return nullptr;
  const int64_t units = filter.shape[kind == LayerKind::kDepthwise ? filter.shape.rank() - 1 : 0];
  if (factors.size() != 1 && static_cast<int64_t>(factors.size()) != units) return nullptr;
  const Tensor* bias = nullptr;
  if (std::ssize(inputs) > places().bias && at(places().bias).shape.num_elements() != 0) {
    bias = at(places().bias).constant;
    if (bias == nullptr) return DeclineToBind("its biases are not constant");
    if (bias->num_elements() != units) return nullptr;
    if (bias->dtype() != (wide ? Dtype::kInt64 : Dtype::kInt32)) {
      return DeclineToBind("its biases are of another width");
    }
  }
  if (kind == LayerKind::kTransposed) return BindTransposed(context, bias);
  const auto shape = Int8ShapeOf(*this, inputs[0].shape, filter.shape);
  if (!shape || shape->outputs() * units != context.outputs[0].shape.num_elements()) return nullptr;
  if (!wide) {
    return BindInt8(*shape, NumbersOfInt8(bias, units, !scales.empty()), *filter.constant,
                    matrices);
  }
  if (!Int16Layer::Suits(*shape)) return DeclineToBind("a window of many taps");
  return BindInt16(*shape, NumbersOfInt16(bias), *filter.constant);
}

Int8Numbers LayerState::NumbersOfInt8(const Tensor* bias, int64_t units, bool by_scales) const {
  Int8Numbers numbers;
  numbers.in_zero = input.zero();
  numbers.out_zero = output.zero();
  if (by_scales) {
    numbers.scales = scales;
  } else {
    numbers.factors = factors;
    numbers.rounded_up = FirstRoundedUp(units);
  }
  numbers.range = range;
  if (bias != nullptr) numbers.bias = bias->data<int32_t>();
  return numbers;
}

Int16Numbers LayerState::NumbersOfInt16(const Tensor* bias) const {
  Int16Numbers numbers;
  numbers.factors = factors;
  numbers.doubles = doubles;
  numbers.narrow = narrow && kind == LayerKind::kDense;
  numbers.range = range;
  if (bias != nullptr) numbers.bias = bias->data<int64_t>();
  return numbers;
}

StatusOr<std::unique_ptr<BoundKernel>> LayerState::BindTransposed(const BindContext& context,
                                                                  const Tensor* bias) {
  using Kernel = StatusOr<std::unique_ptr<BoundKernel>>;
  if (context.inputs[2].dtype == Dtype::kInt16) {
    const auto bind = [&](const Image& /*image*/, const nn::Int8Window& window,
                          const Tensor& weights) -> Kernel {
      return BindInt16(window, NumbersOfInt16(bias), weights);
    };
    return BindPhases(*this, context.inputs, context.outputs[0], bind);
  }
  const auto bind = [&](const Image& image, const nn::Int8Window& window,
                        const Tensor& weights) -> Kernel {
    // A phase's packed weights are its own.
    auto kept = std::make_shared<nn::MatrixInt8>();
    const bool by_scales = !scales.empty() && !LeavesGaps(*this, image);
    const Int8Numbers numbers = NumbersOfInt8(bias, window.units, by_scales);
    ASSIGN_OR_RETURN(auto kernel, BindInt8(window, numbers, weights, *kept));
    return BindKeeping(std::move(kept), std::shared_ptr<const BoundKernel>(std::move(kernel)));
  };
  return BindPhases(*this, context.inputs, context.outputs[0], bind);
}

}  // namespace smelt::lite
