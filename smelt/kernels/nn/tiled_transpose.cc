#include "smelt/kernels/nn/tiled_transpose.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "smelt/kernels/common/read_once.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/nn/planar_conv.h"
#include "smelt/kernels/nn/tiled_conv.h"
#include "smelt/kernels/nn/tiled_panels.h"

namespace smelt::nn {
namespace {

// Along one dimension, the pixels of the result whose distance from one before the padding is
// `rest` modulo the stride: pixel first + n * stride is the sum over t below `taps` of pixel
// n + shift - t of the smaller image times tap rest + t * stride.
struct Phase {
  int64_t rest = 0, taps = 0;
  int64_t first = 0, count = 0, shift = 0;
};
Phase PhaseOf(const ConvProblem& p, size_t d, int64_t rest) {
  const int64_t stride = p.strides[d], pad = p.pad_before[d];
  Phase f{rest, (p.kernel[d] - rest + stride - 1) / stride};
  f.shift = (std::max<int64_t>(0, pad - rest) + stride - 1) / stride;
  f.first = f.shift * stride + rest - pad;
  f.count = f.first >= p.in[d] ? 0 : (p.in[d] - f.first + stride - 1) / stride;
  return f;
}

// The convolution that a phase is, and where its results lie.
ConvProblem PartOf(const ConvProblem& p, const std::vector<Phase>& phases, PixelPlaces* places) {
  ConvProblem part;
  part.batch = p.batch;
  part.in_depth = part.filter_in = p.out_depth;
  part.out_depth = p.in_depth;
  int64_t step = p.in_depth;
  for (size_t d = phases.size(); d-- > 0;) {
    const size_t at = d + 3 - phases.size();
    places->first += phases[d].first * step;
    places->step[at] = p.strides[d] * step;
    step *= p.in[d];
  }
  places->image = step;
  for (size_t d = 0; d < phases.size(); ++d) {
    part.in.push_back(p.out[d]);
    part.out.push_back(phases[d].count);
    part.kernel.push_back(phases[d].taps);
    part.strides.push_back(1);
    part.dilations.push_back(1);
    part.pad_before.push_back(phases[d].taps - 1 - phases[d].shift);
    part.pad_after.push_back(0);
  }
  return part;
}
bool IsEmpty(const ConvProblem& part) {
  return std::ranges::any_of(part.out, [](int64_t size) { return size == 0; });
}

// One for each remainder of each dimension, the last dimension's first.
template <typename Visit>
Status ForEachPhase(const ConvProblem& p, const Visit& visit) {
  std::vector<int64_t> rest(p.in.size(), 0);
  for (;;) {
    std::vector<Phase> phases;
    for (size_t d = 0; d < rest.size(); ++d) phases.push_back(PhaseOf(p, d, rest[d]));
    RETURN_IF_ERROR(visit(phases));
    size_t d = rest.size();
    while (d > 0 && ++rest[d - 1] == p.strides[d - 1]) rest[--d] = 0;
    if (d == 0) return OkStatus();
  }
}

// Are all phases such that vectors of pixels are multiplied?
bool FewChannels(const ConvProblem& p) {
  bool few = true;
  const Status visited = ForEachPhase(p, [&](const std::vector<Phase>& phases) {
    PixelPlaces places;
    const ConvProblem part = PartOf(p, phases, &places);
    few = few && (IsEmpty(part) || PlanarConv::Suits(part));
    return OkStatus();
  });
  return visited.ok() && few;
}

int64_t TapsOf(const std::vector<Phase>& phases) {
  int64_t taps = 1;
  for (const Phase& f : phases) taps *= f.taps;
  return taps;
}

// A phase's weights as a convolution has them: [taps, depth, channels], the last tap first.
StatusOr<Tensor> WeightsOf(const ConvProblem& p, const Tensor& filter,
                           const std::vector<Phase>& phases) {
  const int64_t depth = p.out_depth, channels = p.in_depth, taps = TapsOf(phases);
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::Make(Dtype::kFloat, Shape({taps, depth, channels}), HeapAllocator()));
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t at = 0, step = 1, left = tap;
    for (size_t d = phases.size(); d-- > 0;) {
      const Phase& f = phases[d];
      at += (f.rest + (f.taps - 1 - left % f.taps) * p.strides[d]) * step;
      step *= p.kernel[d];
      left /= f.taps;
    }
    const float* from = filter.data<float>() + at * channels * depth;
    float* to = out.data<float>() + tap * depth * channels;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t g = 0; g < depth; ++g) to[g * channels + c] = from[c * depth + g];
    }
  }
  return out;
}

// All phases' weights, packed, one behind the other.
StatusOr<Tensor> PackPhases(const ConvProblem& p, const Tensor& filter, Allocator* allocator) {
  int64_t taps = 1;
  for (const int64_t size : p.kernel) taps *= size;
  const TiledPanels panels(p.in_depth);
  ASSIGN_OR_RETURN(const Shape shape,
                   Shape::Make(Dims{taps * p.out_depth, panels.vectors * panels.lanes}));
  ASSIGN_OR_RETURN(Tensor all, Tensor::Make(Dtype::kFloat, shape, allocator));
  float* to = all.data<float>();
  RETURN_IF_ERROR(ForEachPhase(p, [&](const std::vector<Phase>& phases) -> Status {
    ASSIGN_OR_RETURN(const Tensor plain, WeightsOf(p, filter, phases));
    ASSIGN_OR_RETURN(const Tensor packed, PackTiled(plain, TapsOf(phases) * p.out_depth, p.in_depth,
                                                    false, {}, HeapAllocator()));
    to = std::copy_n(packed.data<float>(), packed.num_elements(), to);
    return OkStatus();
  }));
  DropOriginal(filter);
  return all;
}

class BoundTiledTranspose final : public BoundKernel {
 public:
  BoundTiledTranspose(std::vector<std::unique_ptr<BoundKernel>> phases, int image, int addend)
      : phases_(std::move(phases)), image_(image), addend_(addend) {}

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const void* own[] = {inputs[image_], addend_ < 0 ? nullptr : inputs[addend_]};
    for (const auto& phase : phases_) RETURN_IF_ERROR(phase->Run(own, outputs, scratch));
    return OkStatus();
  }
  size_t scratch_bytes() const override {
    size_t most = 0;
    for (const auto& phase : phases_) most = std::max(most, phase->scratch_bytes());
    return most;
  }
  // Each pixel is read where it is written, before, and by one phase.
  bool may_overwrite(int i) const override { return addend_ >= 0 && i == addend_; }

 private:
  const std::vector<std::unique_ptr<BoundKernel>> phases_;
  const int image_, addend_;  // inputs of the node
};

}  // namespace

bool TiledTranspose::Suits(const ConvProblem& p) {
  constexpr int64_t kMostStride = 8;
  if (!p.channels_last || p.groups != 1 || Isa().level == IsaLevel::kBaseline) return false;
  bool even = true;
  for (size_t d = 0; d < p.in.size(); ++d) {
    // A pixel without any tap would have to be zero.
    if (p.dilations[d] != 1 || p.kernel[d] < p.strides[d] || p.strides[d] > kMostStride) {
      return false;
    }
    even = even && p.kernel[d] % p.strides[d] == 0;
  }
  if (FewChannels(p)) return true;
  // Timed without AVX-512 (Zen 3). With it the library is faster where phases have few and
  // different taps (Zen 5).
  constexpr int64_t kLeastDepth = 32, kLeastChannels = 8;
  return p.out_depth >= kLeastDepth && p.in_depth >= kLeastChannels &&
         (even || Isa().level == IsaLevel::kAvx2);
}

StatusOr<std::unique_ptr<BoundKernel>> TiledTranspose::Bind(const ConvProblem& p,
                                                            const Tensor& filter, int image,
                                                            const float* bias, int addend,
                                                            const FusedOps& fused) {
  TiledSteps steps;
  if (!TiledStepsOf(fused, bias, &steps)) return nullptr;
  std::vector<std::unique_ptr<BoundKernel>> phases;
  const int own_addend = steps.adds ? addend : -1;
  if (FewChannels(p)) {
    RETURN_IF_ERROR(ForEachPhase(p, [&](const std::vector<Phase>& of) -> Status {
      PixelPlaces places;
      const ConvProblem part = PartOf(p, of, &places);
      if (IsEmpty(part)) return OkStatus();
      ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(p, filter, of));
      phases.push_back(BindPlanar(part, steps, 1, weights.flat<float>(),
                                  steps.has_bias ? bias : nullptr, &places));
      return OkStatus();
    }));
    return std::make_unique<BoundTiledTranspose>(std::move(phases), image, own_addend);
  }
  ASSIGN_OR_RETURN(auto packed, packed_.Get(filter, {}, true, KeptAllocator(), [&](Allocator* a) {
    return PackPhases(p, filter, a);
  }));
  const float* weights = packed->data<float>();
  const TiledPanels panels(p.in_depth);
  bool bound = true;
  RETURN_IF_ERROR(ForEachPhase(p, [&](const std::vector<Phase>& of) {
    PixelPlaces places;
    const ConvProblem part = PartOf(p, of, &places);
    const float* own = weights;
    weights += TapsOf(of) * p.out_depth * panels.vectors * panels.lanes;
    if (IsEmpty(part)) return OkStatus();
    auto owned = std::make_unique<const TiledWeights>(std::shared_ptr<const float>(packed, own));
    phases.push_back(BindTiled(part, steps, 1, std::move(owned),
                               PaddedBias(steps.has_bias ? bias : nullptr, p.in_depth), &places));
    bound = bound && phases.back() != nullptr;
    return OkStatus();
  }));
  if (!bound) return nullptr;
  return std::make_unique<BoundTiledTranspose>(std::move(phases), image, own_addend);
}

}  // namespace smelt::nn
