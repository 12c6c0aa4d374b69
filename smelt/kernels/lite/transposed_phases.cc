#include "smelt/kernels/lite/transposed_phases.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "smelt/base/parallel.h"
#include "smelt/kernels/decline_to_bind.h"

namespace smelt::lite {
namespace {

// Bytes that are worth a thread to move.
constexpr int64_t kMovedByThread = 1 << 16;
constexpr int64_t kMostPhases = 64;

// The taps of one dimension that outputs with a remainder see, and where they lie.
struct PhaseTaps {
  int64_t outputs = 0;  // as many have the remainder
  int64_t first = 0;    // tap that the last pixel of a window meets; taps lie a stride apart
  int64_t count = 1;    // pixels of a window
  bool none = false;    // no tap: one that counts for nothing
  int64_t before = 0;   // where the first window begins: so many pixels before the image

  PhaseTaps(int64_t remainder, int64_t size, int64_t stride, int64_t kernel, int64_t pad) {
    if (remainder < size) outputs = (size - remainder - 1) / stride + 1;
    first = (remainder + pad) % stride;
    none = first >= kernel;
    if (!none) count = (kernel - first - 1) / stride + 1;
    before = count - 1 - (remainder + pad) / stride;
  }
  // Which tap pixel i of a window meets; less than 0: none.
  int64_t TapOf(int64_t i, int64_t stride) const {
    return none ? -1 : first + (count - 1 - i) * stride;
  }
};

struct BoundPhase {
  int64_t line, column;  // of the first result
  int64_t lines, columns;
  std::unique_ptr<BoundKernel> kernel;
};

class BoundPhases final : public BoundKernel {
 public:
  BoundPhases(std::vector<BoundPhase> phases, const LayerWindow& s, const Image& m, size_t pixel)
      : phases_(std::move(phases)),
        stride_h_(s.stride_h),
        stride_w_(s.stride_w),
        m_(m),
        pixel_(pixel) {
    for (const BoundPhase& p : phases_) {
      results_ = std::max(results_, static_cast<size_t>(m.batch * p.lines * p.columns) * pixel);
      scratch_ = std::max(scratch_, p.kernel->scratch_bytes());
    }
    results_ = alone() ? 0 : (results_ + 63) / 64 * 64;
  }

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const void* const* const image = inputs + 2;  // a phase's only input
    auto* const results = static_cast<char*>(scratch);
    for (const BoundPhase& p : phases_) {
      void* to[] = {alone() ? outputs[0] : results};
      RETURN_IF_ERROR(p.kernel->Run(image, to, results + results_));
      if (!alone()) Spread(p, results, static_cast<char*>(outputs[0]));
    }
    return OkStatus();
  }
  // Results of a phase, then what its kernel wants.
  size_t scratch_bytes() const override { return results_ + scratch_; }

 private:
  bool alone() const { return stride_h_ == 1 && stride_w_ == 1; }

  void Spread(const BoundPhase& p, const char* results, char* y) const {
    const auto line = static_cast<size_t>(p.columns) * pixel_;
    const int64_t grain = std::max<int64_t>(1, kMovedByThread / static_cast<int64_t>(line));
    ParallelFor(m_.batch * p.lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / p.lines * m_.in_h + p.line + i % p.lines * stride_h_;
        const char* from = results + static_cast<size_t>(i) * line;
        char* to = y + static_cast<size_t>(row * m_.in_w + p.column) * pixel_;
        for (int64_t c = 0; c < p.columns; ++c, from += pixel_) {
          std::memcpy(to, from, pixel_);
          to += static_cast<size_t>(stride_w_) * pixel_;
        }
      }
    });
  }

  const std::vector<BoundPhase> phases_;
  const int64_t stride_h_, stride_w_;
  const Image m_;  // in_* are sizes of the output
  const size_t pixel_;
  size_t results_ = 0, scratch_ = 0;  // bytes
};

// `filter` [units, kernel_h, kernel_w, depth] at the taps of a phase.
StatusOr<Tensor> WeightsOf(const LayerWindow& s, const Image& m, int64_t units,
                           const PhaseTaps& down, const PhaseTaps& across, const int8_t* filter) {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{units, down.count, across.count, m.depth}));
  ASSIGN_OR_RETURN(Tensor weights, Tensor::Zeros(Dtype::kInt8, shape));
  auto* to = weights.data<int8_t>();
  for (int64_t u = 0; u < units; ++u) {
    for (int64_t i = 0; i < down.count; ++i) {
      for (int64_t j = 0; j < across.count; ++j, to += m.depth) {
        const int64_t y = down.TapOf(i, s.stride_h), x = across.TapOf(j, s.stride_w);
        if (y < 0 || x < 0) continue;
        std::copy_n(filter + ((u * m.kernel_h + y) * m.kernel_w + x) * m.depth, m.depth, to);
      }
    }
  }
  return weights;
}

}  // namespace

StatusOr<std::unique_ptr<BoundKernel>> BindPhases(const LayerWindow& s,
                                                  std::span<const BoundTensor> inputs,
                                                  const BoundTensor& output, BindPhaseFn bind) {
  if (inputs[1].constant == nullptr) return DeclineToBind("its weights are not constant");
  if (inputs[2].shape.num_elements() == 0 || output.shape.num_elements() == 0 ||
      output.shape.rank() != 4) {
    return nullptr;
  }
  ASSIGN_OR_RETURN(Tensor sizes, Tensor::Make(Dtype::kInt32, Shape({4})));
  for (int i = 0; i < 4; ++i) {
    sizes.data<int32_t>()[i] = static_cast<int32_t>(output.shape[i]);
  }
  const auto fitted = TransposedImageOf(s, sizes, inputs[2].shape, inputs[1].shape);
  if (!fitted.ok()) return nullptr;
  const Image& m = fitted->image;
  const int64_t units = output.shape[3];
  const int64_t lines = std::min(s.stride_h, m.in_h), columns = std::min(s.stride_w, m.in_w);
  if (lines > kMostPhases / columns) return DeclineToBind("its strides are large");
  const auto* filter = static_cast<const int8_t*>(inputs[1].constant->raw());
  std::vector<BoundPhase> phases;
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t column = 0; column < columns; ++column) {
      const PhaseTaps down(line, m.in_h, s.stride_h, m.kernel_h, m.top);
      const PhaseTaps across(column, m.in_w, s.stride_w, m.kernel_w, m.left);
      if (down.before < 0 || across.before < 0) {
        return DeclineToBind("a window begins behind the image's first pixel");
      }
      nn::Int8Window w;
      w.batch = m.batch, w.in_h = m.out_h, w.in_w = m.out_w;
      w.depth = m.depth, w.units = units;
      w.out_h = down.outputs, w.out_w = across.outputs;
      w.kernel_h = down.count, w.kernel_w = across.count;
      w.top = down.before, w.left = across.before;
      if (IsMostlyPadding(w)) return DeclineToBind("its image would be mostly padding");
      ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(s, m, units, down, across, filter));
      ASSIGN_OR_RETURN(auto kernel, bind(m, w, weights));
      if (kernel == nullptr) return nullptr;
      phases.push_back({line, column, w.out_h, w.out_w, std::move(kernel)});
    }
  }
  return std::make_unique<BoundPhases>(std::move(phases), s, m,
                                       static_cast<size_t>(units) * DtypeSize(output.dtype));
}

}  // namespace smelt::lite
