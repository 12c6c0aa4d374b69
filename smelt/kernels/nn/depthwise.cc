#include "smelt/kernels/nn/depthwise.h"

#include <algorithm>
#include <vector>

#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/nn/tiled_steps.h"

namespace smelt::nn {
namespace {

// Multiplications that are worth a thread.
constexpr int64_t kDepthwisePerThread = 1 << 16;

class BoundDepthwise final : public BoundKernel {
 public:
  BoundDepthwise(const DepthwiseLoop& loop, int64_t batch, std::vector<float> weights,
                 std::vector<float> bias)
      : loop_(loop),
        rows_(batch * loop.out_h),
        grain_(std::max<int64_t>(1, kDepthwisePerThread / (loop.out_w * loop.channels) /
                                        (loop.kernel_h * loop.kernel_w))),
        weights_(std::move(weights)),
        bias_(std::move(bias)),
        zeros_(static_cast<size_t>(loop.channels), 0.0f) {
    loop_.weights = weights_.data();
    loop_.bias = bias_.data();
    loop_.zeros = zeros_.data();
  }

  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    const auto* x = static_cast<const float*>(inputs[0]);
    auto* y = static_cast<float*>(outputs[0]);
    ParallelFor(rows_, grain_,
                [&](int64_t begin, int64_t end) { IsaConv().depthwise(loop_, x, y, begin, end); });
    return OkStatus();
  }

 private:
  DepthwiseLoop loop_;
  const int64_t rows_, grain_;
  const std::vector<float> weights_, bias_, zeros_;
};

}  // namespace

StatusOr<std::unique_ptr<BoundKernel>> BindDepthwise(const ConvProblem& p, const Tensor& filter,
                                                     std::span<const float> factors,
                                                     const float* bias, const FusedOps& fused) {
  TiledSteps steps;
  const bool has_bias = !fused.empty() && fused.steps[0].kind == FusedStep::Kind::kBias;
  if (!p.channels_last || p.spatial() != 2 || p.groups != p.in_depth || p.out_depth != p.in_depth ||
      p.in_depth < IsaConv().lanes || p.kernel[0] * p.kernel[1] > kMostDepthwiseTaps ||
      (has_bias && bias == nullptr) || !TiledStepsOf(fused, &steps) || steps.adds) {
    return nullptr;
  }
  DepthwiseLoop loop;
  loop.clamps = steps.clamps;
  loop.low = steps.low, loop.high = steps.high;
  loop.act = steps.act;
  loop.alpha = steps.alpha;
  loop.channels = p.in_depth;
  loop.in_h = p.in[0], loop.in_w = p.in[1];
  loop.out_h = p.out[0], loop.out_w = p.out[1];
  loop.kernel_h = p.kernel[0], loop.kernel_w = p.kernel[1];
  loop.stride_h = p.strides[0], loop.stride_w = p.strides[1];
  loop.dilation_h = p.dilations[0], loop.dilation_w = p.dilations[1];
  loop.pad_top = p.pad_before[0], loop.pad_left = p.pad_before[1];
  const std::span<const float> given(filter.data<float>(),
                                     static_cast<size_t>(filter.num_elements()));
  std::vector<float> weights(given.begin(), given.end());
  for (size_t i = 0; !factors.empty() && i < weights.size(); ++i) {
    weights[i] *= factors[i % factors.size()];
  }
  std::vector<float> biases(static_cast<size_t>(p.in_depth), 0.0f);
  if (has_bias) std::copy_n(bias, p.in_depth, biases.begin());
  return std::make_unique<BoundDepthwise>(loop, p.batch, std::move(weights), std::move(biases));
}

}  // namespace smelt::nn
