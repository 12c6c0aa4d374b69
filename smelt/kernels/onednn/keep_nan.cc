#include "smelt/kernels/onednn/keep_nan.h"

#include <algorithm>

#include "smelt/base/parallel.h"
#include "smelt/io/forms_file.h"
#include "smelt/kernels/isa/bfloat16.h"
#include "smelt/kernels/nn/isa_activation.h"

namespace smelt::onednn {
namespace {

constexpr int64_t kModestGrain = 1 << 16;

bool AreModest(std::span<const WatchedInput> watched, const void* const* inputs) {
  return std::ranges::all_of(watched, [&](const WatchedInput& w) {
    return nn::AllModest(inputs[w.input], w.elements, w.dtype);
  });
}

class ModestLayer final : public BoundKernel {
 public:
  ModestLayer(std::unique_ptr<BoundKernel> layer, std::vector<WatchedInput> watched,
              MakeBound instead)
      : layer_(std::move(layer)), watched_(std::move(watched)), instead_(std::move(instead)) {}
  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    if (AreModest(watched_, inputs)) return layer_->Run(inputs, outputs, scratch);
    return RunInstead(instead_, "a layer has no form for infinities", inputs, outputs);
  }
  size_t scratch_bytes() const override { return layer_->scratch_bytes(); }

 private:
  const std::unique_ptr<BoundKernel> layer_;
  const std::vector<WatchedInput> watched_;
  const MakeBound instead_;
};

class NanKeeper final : public BoundKernel {
 public:
  NanKeeper(std::unique_ptr<BoundKernel> layer, std::vector<WatchedInput> watched, Activation clamp,
            int64_t results, Dtype dtype, MakeBound unclamped)
      : layer_(std::move(layer)),
        watched_(std::move(watched)),
        clamp_(nn::IsaActivation(clamp)),
        results_(results),
        narrow_(dtype == Dtype::kBfloat16),
        unclamped_(std::move(unclamped)) {}

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    if (AreModest(watched_, inputs)) return layer_->Run(inputs, outputs, scratch);
    RETURN_IF_ERROR(
        RunInstead(unclamped_, "a layer has no form without its activation", inputs, outputs));
    ParallelFor(results_, kModestGrain, [&](int64_t begin, int64_t end) {
      if (narrow_) {
        auto* y = static_cast<uint16_t*>(outputs[0]) + begin;
        Bfloat16Unary(clamp_)(y, y, end - begin, 0.0f);
      } else {
        auto* y = static_cast<float*>(outputs[0]) + begin;
        Isa().unary[static_cast<int>(clamp_)](y, y, end - begin, 0.0f);
      }
    });
    return OkStatus();
  }
  size_t scratch_bytes() const override { return layer_->scratch_bytes(); }
  bool may_overwrite(int i) const override { return layer_->may_overwrite(i); }

 private:
  const std::unique_ptr<BoundKernel> layer_;
  const std::vector<WatchedInput> watched_;
  const UnaryF32 clamp_;
  const int64_t results_;
  const bool narrow_;
  const MakeBound unclamped_;
};

}  // namespace

size_t FirstClamp(const FusedOps& ops) {
  size_t i = 0;
  while (i < ops.steps.size() && (ops.steps[i].kind != FusedStep::Kind::kActivation ||
                                  (ops.steps[i].activation != Activation::kRelu &&
                                   ops.steps[i].activation != Activation::kRelu6))) {
    ++i;
  }
  return i;
}

FusedOps StepsBefore(const FusedOps& ops, size_t at) {
  FusedOps before = ops;
  before.steps.resize(at);
  return before;
}

FusedOps StepsFrom(const FusedOps& ops, size_t at) {
  FusedOps from = ops;
  from.steps.erase(from.steps.begin(), from.steps.begin() + static_cast<std::ptrdiff_t>(at));
  return from;
}

bool ConstantIsModest::operator()(const Tensor& w) {
  const auto is_it = [&](const Seen& s) { return s.w.raw() == w.raw(); };
  auto seen = seen_.Find(is_it);
  if (seen == nullptr) {
    const auto fact =
        KeptFact::Of(absl::StrCat("modest ", DtypeName(w.dtype())), w.raw(), w.bytes());
    const bool known = fact && fact->Known();
    const bool modest = known || nn::AllModest(w.raw(), w.num_elements(), w.dtype());
    if (fact && modest && !known) fact->Keep();
    seen = seen_.Insert(is_it, {w, modest});
  }
  return seen->modest;
}

size_t StepsThatKeepNan(const FusedOps& ops, const Tensor& x, const Tensor& w,
                        ConstantIsModest* constant, std::span<const float> factors,
                        nn::FusedArgs args) {
  const size_t clamp = FirstClamp(ops);
  if (clamp == ops.steps.size()) return clamp;
  const auto modest = [](const Tensor& t) {
    return nn::AllModest(t.raw(), t.num_elements(), t.dtype());
  };
  const bool all = clamp + 1 == ops.steps.size() &&
                   (constant != nullptr ? (*constant)(w) : modest(w)) && modest(x) &&
                   nn::AllModest(factors.data(), static_cast<int64_t>(factors.size())) &&
                   std::ranges::all_of(args, [&](const Tensor* t) { return modest(*t); });
  return all ? ops.steps.size() : clamp;
}

std::unique_ptr<BoundKernel> WhileModest(std::unique_ptr<BoundKernel> layer,
                                         std::vector<WatchedInput> watched, MakeBound instead) {
  return std::make_unique<ModestLayer>(std::move(layer), std::move(watched), std::move(instead));
}

std::unique_ptr<BoundKernel> KeepNan(std::unique_ptr<BoundKernel> layer,
                                     std::vector<WatchedInput> watched, Activation clamp,
                                     int64_t results, Dtype dtype, MakeBound unclamped) {
  return std::make_unique<NanKeeper>(std::move(layer), std::move(watched), clamp, results, dtype,
                                     std::move(unclamped));
}

}  // namespace smelt::onednn
