#include "smelt/kernels/onednn/activation_behind.h"

#include <algorithm>

#include "smelt/base/parallel.h"
#include "smelt/kernels/nn/isa_activation.h"

namespace smelt::onednn {
namespace {

constexpr int64_t kBehindGrain = 1 << 13;
// Floats that stay in the nearest cache.
constexpr int64_t kBehindBlock = 1024;

class LayerThenActivation final : public BoundKernel {
 public:
  LayerThenActivation(std::unique_ptr<BoundKernel> layer, IsaUnaryFn act, float alpha,
                      int64_t results)
      : layer_(std::move(layer)), act_(act), alpha_(alpha), results_(results) {}

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    RETURN_IF_ERROR(layer_->Run(inputs, outputs, scratch));
    auto* y = static_cast<uint16_t*>(outputs[0]);
    ParallelFor(results_, kBehindGrain, [&](int64_t begin, int64_t end) {
      float wide[kBehindBlock];
      for (int64_t i = begin; i < end; i += kBehindBlock) {
        const int64_t n = std::min(kBehindBlock, end - i);
        Isa().bf16_to_f32(y + i, wide, n);
        act_(wide, wide, n, alpha_);
        Isa().f32_to_bf16(wide, y + i, n);
      }
    });
    return OkStatus();
  }
  size_t scratch_bytes() const override { return layer_->scratch_bytes(); }
  bool may_overwrite(int i) const override { return layer_->may_overwrite(i); }

 private:
  const std::unique_ptr<BoundKernel> layer_;
  const IsaUnaryFn act_;
  const float alpha_;
  const int64_t results_;
};

}  // namespace

bool EndsInExponential(const FusedOps& ops) {
  if (ops.empty() || ops.steps.back().kind != FusedStep::Kind::kActivation) return false;
  const Activation a = ops.steps.back().activation;
  return a != Activation::kRelu && a != Activation::kRelu6 && a != Activation::kLeakyRelu &&
         a != Activation::kHardSwish;
}

std::unique_ptr<BoundKernel> ActivationBehind(std::unique_ptr<BoundKernel> layer,
                                              const FusedOps& ops, int64_t results) {
  const UnaryF32 act = nn::IsaActivation(ops.steps.back().activation);
  return std::make_unique<LayerThenActivation>(std::move(layer), Isa().unary[static_cast<int>(act)],
                                               ops.leaky_alpha, results);
}

}  // namespace smelt::onednn
