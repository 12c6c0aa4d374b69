// What a convolution, a fully connected layer or a transposed convolution of quantized tensors
// knows before it runs. Thread safe.
#ifndef SMELT_KERNELS_LITE_LAYER_STATE_H_
#define SMELT_KERNELS_LITE_LAYER_STATE_H_

#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "smelt/kernels/lite/exact_product.h"
#include "smelt/kernels/lite/fixed_point.h"
#include "smelt/kernels/lite/int16_layer.h"
#include "smelt/kernels/lite/int8_layer.h"
#include "smelt/kernels/lite/layer_shape.h"
#include "smelt/kernels/nn/matrix_int8.h"

namespace smelt::lite {

// Where a layer has its inputs.
struct Places {
  int input, weights, bias;
};
constexpr Places kForward = {0, 1, 2};
constexpr Places kTransposed = {2, 1, 3};

struct LayerState final : KernelState, LayerWindow {
  Affine input, weights, output;
  std::vector<int32_t> weight_zeros;
  std::vector<Factor> factors;  // one, or one for each channel
  std::vector<float> scales;    // as many, in the place of factors: of layers that XNNPACK runs
  FloatSteps float_steps;
  Range range;
  Dtype type = Dtype::kInt8;  // of the output
  // Of int16, are sums of 32 bits rounded by TimesUp? Of products unless biases have 64 bits, or
  // would have.
  bool narrow = false;
  std::vector<double> doubles;  // as many, in the place of factors: of other products of int16
  std::vector<std::unique_ptr<ExactProduct>> products;  // by group
  absl::Mutex mutex;
  nn::MatrixInt8 matrices;

  size_t At(int64_t c) const { return factors.size() == 1 ? 0 : static_cast<size_t>(c); }
  double in_double(int64_t c) const { return doubles[At(c)]; }
  const Factor& factor(int64_t c) const { return factors[At(c)]; }
  ExactProduct& product(size_t group) {
    absl::MutexLock lock(&mutex);
    while (products.size() <= group) products.push_back(std::make_unique<ExactProduct>());
    return *products[group];
  }
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
  // `bias` may be nullptr. Of the arguments nothing is kept.
  Int8Numbers NumbersOfInt8(const Tensor* bias, int64_t units, bool by_scales) const;
  Int16Numbers NumbersOfInt16(const Tensor* bias) const;
  StatusOr<std::unique_ptr<BoundKernel>> BindTransposed(const BindContext& context,
                                                        const Tensor* bias);
  // Of layers that XNNPACK does not run: how many first channels of `channels` are rounded by
  // TimesUp, the others by Times. Transposed ones of int8 take eight channels at a time.
  int64_t FirstRoundedUp(int64_t channels) const {
    if (kind == LayerKind::kDepthwise) return 0;
    if (kind != LayerKind::kTransposed) return channels;
    return type == Dtype::kInt8 ? channels / 8 * 8 : channels;
  }
  // Where its inputs are.
  const Places& places() const { return kind == LayerKind::kTransposed ? kTransposed : kForward; }
};

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_LAYER_STATE_H_
