#include "smelt/kernels/nn/via_floats.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/isa.h"

namespace smelt::nn {
namespace {

constexpr int64_t kWidenGrain = 1 << 14;
// Floats of a vector's width behind each other's end.
int64_t Aligned(int64_t floats) { return (floats + 15) / 16 * 16; }

class BoundViaFloats final : public BoundKernel {
 public:
  BoundViaFloats(std::unique_ptr<BoundKernel> own, std::vector<WidenedInput> wide, int64_t results)
      : own_(std::move(own)), wide_(std::move(wide)), results_(results), floats_(Aligned(results)) {
    for (const WidenedInput& w : wide_) {
      inputs_ = std::max(inputs_, w.input + 1);
      floats_ += Aligned(w.elements);
    }
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(floats_) * sizeof(float) + own_->scratch_bytes();
  }
  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    auto* at = static_cast<float*>(scratch);
    absl::InlinedVector<const void*, 8> all(inputs, inputs + inputs_);
    for (const WidenedInput& w : wide_) {
      const auto* x = static_cast<const uint16_t*>(inputs[w.input]);
      ParallelFor(w.elements, kWidenGrain, [&](int64_t begin, int64_t end) {
        Isa().bf16_to_f32(x + begin, at + begin, end - begin);
      });
      all[static_cast<size_t>(w.input)] = at;
      at += Aligned(w.elements);
    }
    float* y = at;
    void* outs[] = {y};
    RETURN_IF_ERROR(own_->Run(all.data(), outs, y + Aligned(results_)));
    auto* to = static_cast<uint16_t*>(outputs[0]);
    ParallelFor(results_, kWidenGrain, [&](int64_t begin, int64_t end) {
      Isa().f32_to_bf16(y + begin, to + begin, end - begin);
    });
    return OkStatus();
  }
  // All is read before anything is written.
  bool may_overwrite(int i) const override {
    return std::ranges::any_of(wide_, [i](const WidenedInput& w) { return w.input == i; });
  }

 private:
  const std::unique_ptr<BoundKernel> own_;
  const std::vector<WidenedInput> wide_;
  const int64_t results_;
  int inputs_ = 0;  // up to the last that is widened; the kernel reads no other
  int64_t floats_;
};

}  // namespace

std::unique_ptr<BoundKernel> ViaFloats(std::unique_ptr<BoundKernel> own,
                                       std::vector<WidenedInput> wide, int64_t results) {
  return std::make_unique<BoundViaFloats>(std::move(own), std::move(wide), results);
}

}  // namespace smelt::nn
