#include "smelt/kernels/nn/matrix_bfloat16.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "smelt/kernels/nn/tiled_steps.h"

namespace smelt::nn {
namespace {

class BoundMatrixBfloat16 final : public BoundKernel {
 public:
  BoundMatrixBfloat16(MatrixRows rows, ConstantForms<int64_t>::Ref weights,
                      std::vector<float> start, const TiledSteps& steps, int addend)
      : rows_(std::move(rows)),
        weights_(std::move(weights)),
        start_(std::move(start)),
        addend_(steps.adds ? addend : -1) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    run_.low = steps.clamps ? steps.low : -kInfinity;
    run_.high = steps.clamps ? steps.high : kInfinity;
  }

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const auto* addend = addend_ < 0 ? nullptr : static_cast<const uint16_t*>(inputs[addend_]);
    rows_.Run(inputs[0], 0, scratch,
              [&](const MatrixRun& part, const MatrixRows::PanelRange& panels) {
                Bfloat16MatrixRun run = run_;
                static_cast<MatrixRun&>(run) = part;
                rows_.ForPanels(panels, weights_->raw(), &run, [&](int64_t column) {
                  run.start = start_.data() + column;
                  run.y = static_cast<uint16_t*>(outputs[0]) + column;
                  run.addend = addend == nullptr ? nullptr : addend + column;
                  IsaMatrixTiles().run_bfloat16(run);
                });
              });
    return OkStatus();
  }
  size_t scratch_bytes() const override { return rows_.scratch_bytes(); }
  // A row of sums reads what is added where it writes, before.
  bool may_overwrite(int i) const override { return i == addend_; }

 private:
  const MatrixRows rows_;
  const ConstantForms<int64_t>::Ref weights_;
  const std::vector<float> start_;
  Bfloat16MatrixRun run_;
  const int addend_;  // input of the node; -1: nothing is added
};

Int8Window WindowOfRows(const MatMulProblem& p) {
  return Int8Window::OfRows(p.output.num_elements() / p.n, p.k, p.n);
}

}  // namespace

bool MatrixBfloat16::Suits(const ConvProblem& p) {
  return IsaMatrixTiles().run_bfloat16 != nullptr && p.channels_last && p.spatial() == 2 &&
         p.groups == 1 && MatrixRows::Suits(Int8Window::Of(p)) &&
         !MatrixRows::CopiesShortLines(Int8Window::Of(p), sizeof(uint16_t));
}

bool MatrixBfloat16::Suits(const MatMulProblem& p) {
  return IsaMatrixTiles().run_bfloat16 != nullptr && !p.transpose_a && p.batches_b() == 1 &&
         p.output.num_elements() > 0 && MatrixRows::Suits(WindowOfRows(p));
}

StatusOr<std::unique_ptr<BoundKernel>> MatrixBfloat16::Bind(const ConvProblem& p,
                                                            const Tensor& filter,
                                                            std::span<const float> factors,
                                                            const float* bias, int addend,
                                                            const FusedOps& fused) {
  return Bind(Int8Window::Of(p), filter, false, factors, bias, addend, fused);
}

StatusOr<std::unique_ptr<BoundKernel>> MatrixBfloat16::Bind(const MatMulProblem& p,
                                                            const Tensor& matrix, const float* bias,
                                                            int addend, const FusedOps& fused) {
  return Bind(WindowOfRows(p), matrix, p.transpose_b, {}, bias, addend, fused);
}

StatusOr<std::unique_ptr<BoundKernel>> MatrixBfloat16::Bind(const Int8Window& w,
                                                            const Tensor& weights, bool transposed,
                                                            std::span<const float> factors,
                                                            const float* bias, int addend,
                                                            const FusedOps& fused) {
  TiledSteps steps;
  if (!ClampingStepsOf(fused, bias, addend, &steps)) return nullptr;
  MatrixRows rows(w, sizeof(uint16_t), /*alone=*/true);
  const auto pack = [&](Allocator* a) { return rows.Packed(weights, transposed, factors, a); };
  ASSIGN_OR_RETURN(auto packed,
                   packed_.Get(weights, rows.num_segments(), true, KeptAllocator(), pack));
  std::vector<float> start(static_cast<size_t>(rows.num_panels() * kMatrixColumns), 0.0f);
  if (steps.has_bias) std::copy_n(bias, w.units, start.begin());
  return std::make_unique<BoundMatrixBfloat16>(std::move(rows), std::move(packed), std::move(start),
                                               steps, addend);
}

}  // namespace smelt::nn
