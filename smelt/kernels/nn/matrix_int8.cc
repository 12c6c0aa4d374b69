#include "smelt/kernels/nn/matrix_int8.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace smelt::nn {
namespace {

class BoundMatrixInt8 final : public BoundKernel {
 public:
  BoundMatrixInt8(MatrixRows rows, ConstantForms<int64_t>::Ref weights, std::vector<int32_t> start,
                  std::vector<float> scales, const Int8MatrixRun& run, uint8_t zero,
                  const PairsInt8Steps::Step* added)
      : rows_(std::move(rows)),
        weights_(std::move(weights)),
        start_(std::move(start)),
        scales_(std::move(scales)),
        run_(run),
        zero_(zero) {
    if (added == nullptr) return;
    addend_ = static_cast<const int8_t*>(added->constant);
    addend_input_ = addend_ == nullptr ? added->input : -1;
  }

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const auto* addend =
        addend_input_ >= 0 ? static_cast<const int8_t*>(inputs[addend_input_]) : addend_;
    rows_.Run(inputs[0], zero_, scratch,
              [&](const MatrixRun& part, const MatrixRows::PanelRange& panels) {
                Int8MatrixRun run = run_;
                static_cast<MatrixRun&>(run) = part;
                rows_.ForPanels(panels, weights_->raw(), &run, [&](int64_t column) {
                  run.start = start_.data() + column;
                  run.scales = scales_.data() + column;
                  run.y = static_cast<int8_t*>(outputs[0]) + column;
                  run.addend = addend == nullptr ? nullptr : addend + column;
                  IsaMatrixTiles().run_int8(run);
                });
              });
    return OkStatus();
  }
  size_t scratch_bytes() const override { return rows_.scratch_bytes(); }
  // A pair of rows reads what is added where it writes, before.
  bool may_overwrite(int i) const override { return i == addend_input_; }

 private:
  const MatrixRows rows_;
  const ConstantForms<int64_t>::Ref weights_;
  const std::vector<int32_t> start_;
  const std::vector<float> scales_;
  const Int8MatrixRun run_;
  const uint8_t zero_;
  const int8_t* addend_ = nullptr;
  int addend_input_ = -1;
};

}  // namespace

bool MatrixInt8::Suits(const Int8Window& w) {
  return IsaMatrixTiles().run_int8 != nullptr && MatrixRows::Suits(w);
}

StatusOr<std::unique_ptr<BoundKernel>> MatrixInt8::Bind(const Int8Window& w, const Tensor& weights,
                                                        bool transposed, int32_t x_zero,
                                                        bool x_unsigned, PairsInt8Steps steps) {
  steps.Simplify();
  if (!steps.IsDirect()) return nullptr;
  if (std::isnan(steps.numbers.low) || std::isnan(steps.numbers.high)) return nullptr;
  const bool adds = !steps.steps.empty();
  Int8MatrixRun run;
  run.addend_scale = adds ? steps.numbers.addend_scale * steps.factor : 0;
  run.offset = steps.numbers.zero;
  if (adds) run.offset -= steps.numbers.addend_zero * run.addend_scale;
  const auto bound = [](float f) {
    return static_cast<int8_t>(std::clamp(std::nearbyint(f), -128.0f, 127.0f));
  };
  run.low = bound(steps.numbers.low);
  run.high = bound(steps.numbers.high);
  run.flip = steps.numbers.flip;
  run.addend_flip = steps.numbers.addend_flip;
  run.x_unsigned = x_unsigned;
  return BindRun(w, weights, transposed, x_zero, {steps.scales, steps.factor, steps.bias}, run,
                 adds ? &steps.steps[0] : nullptr);
}

StatusOr<std::unique_ptr<BoundKernel>> MatrixInt8::Bind(const Int8Window& w, const Tensor& weights,
                                                        int32_t x_zero, const Rounded& rounded) {
  Int8MatrixRun run;
  run.zero = rounded.zero;
  run.low = rounded.low;
  run.high = rounded.high;
  return BindRun(w, weights, true, x_zero, {rounded.scales, 1, rounded.bias}, run, nullptr);
}

StatusOr<std::unique_ptr<BoundKernel>> MatrixInt8::BindRun(const Int8Window& w,
                                                           const Tensor& weights, bool transposed,
                                                           int32_t x_zero, const Sums& of,
                                                           const Int8MatrixRun& run,
                                                           const PairsInt8Steps::Step* added) {
  MatrixRows rows(w, 1, false);
  const int64_t k = w.kernel_h * w.kernel_w * w.depth;
  const size_t padded = static_cast<size_t>(rows.num_panels() * kMatrixColumns);
  std::vector<int32_t> start(padded);
  std::vector<float> scales(padded);
  const auto* values = static_cast<const int8_t*>(weights.raw());
  // Sums and results stay within int32 whatever the numbers are.
  constexpr double kMost = 1 << 30;
  double largest = 0;
  std::vector<int64_t> sums(static_cast<size_t>(w.units)), sizes(sums.size());
  for (int64_t u = 0; u < w.units; ++u) {
    for (int64_t i = 0; transposed && i < k; ++i) {
      sums[static_cast<size_t>(u)] += values[u * k + i];
      sizes[static_cast<size_t>(u)] += std::abs(int{values[u * k + i]});
    }
  }
  for (int64_t i = 0; !transposed && i < k; ++i, values += w.units) {
    for (int64_t u = 0; u < w.units; ++u) {
      sums[static_cast<size_t>(u)] += values[u];
      sizes[static_cast<size_t>(u)] += std::abs(int{values[u]});
    }
  }
  for (size_t u = 0; u < sums.size(); ++u) {
    const int64_t first = (of.bias == nullptr ? 0 : of.bias[u]) - x_zero * sums[u];
    const double most =
        std::abs(static_cast<double>(first)) + 255.0 * static_cast<double>(sizes[u]);
    if (!(most < kMost)) return nullptr;
    start[u] = static_cast<int32_t>(first);
    scales[u] = of.scales[of.scales.size() == 1 ? 0 : u] * of.factor;
    if (!std::isfinite(scales[u])) return nullptr;
    largest = std::max(largest, most * std::abs(static_cast<double>(scales[u])));
  }
  largest += std::abs(run.offset) + 256.0 * std::abs(run.addend_scale);
  if (!(largest < kMost)) return nullptr;

  const auto pack = [&](Allocator* a) { return rows.Packed(weights, transposed, {}, a); };
  ASSIGN_OR_RETURN(auto packed,
                   packed_.Get(weights, rows.num_segments(), true, KeptAllocator(), pack));
  return std::make_unique<BoundMatrixInt8>(std::move(rows), std::move(packed), std::move(start),
                                           std::move(scales), run, static_cast<uint8_t>(x_zero),
                                           added);
}

}  // namespace smelt::nn
