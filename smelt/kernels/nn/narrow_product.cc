#include "smelt/kernels/nn/narrow_product.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"
#include "smelt/base/processor.h"
#include "smelt/kernels/common/kept_form.h"
#include "smelt/kernels/common/read_once.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/tile_bfloat16.h"
#include "smelt/kernels/nn/narrow_panels.h"
#include "smelt/kernels/nn/tiled_steps.h"

namespace smelt::nn {
namespace {

constexpr int64_t kLanesOfTile = kNarrowTileLanes, kRowsOfTile = kNarrowTileRows;

class BoundNarrowProduct final : public BoundKernel {
 public:
  // `weights`: as PackPairs makes them. `bias`: of whole vectors.
  BoundNarrowProduct(int64_t rows, int64_t depth, int64_t columns, const TiledSteps& steps,
                     int addend, ConstantForms<std::monostate>::Ref weights,
                     std::vector<float> bias)
      : depth_(depth),
        columns_(columns),
        addend_(steps.adds ? addend : -1),
        blocks_((rows + kRowsOfTile - 1) / kRowsOfTile),
        block_(rows / blocks_),
        longer_blocks_(rows % blocks_),
        weights_(std::move(weights)),
        bias_(std::move(bias)) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    NarrowTile tile;
    tile.low = steps.clamps ? steps.low : -kInfinity;
    tile.high = steps.clamps ? steps.high : kInfinity;
    tile.pairs = depth / 2;
    tile.x_step = depth;
    tile.y_step = columns;
    tile.fetches = rows * columns * int64_t{sizeof(uint16_t)} > NearCacheBytes(1 << 20) / 2;
    const NarrowPanels panels(columns);
    for (int64_t i = 0; i < panels.count; ++i) {
      const NarrowPanels::Panel panel = panels.At(i);
      tile.weights = static_cast<const uint16_t*>(weights_->raw()) + panel.column * depth;
      tile.bias = bias_.data() + panel.column;
      tile.last = panel.last;
      panels_.push_back({tile, panel.column, NarrowTileOf(static_cast<int>(block_), panel.vectors),
                         longer_blocks_ > 0
                             ? NarrowTileOf(static_cast<int>(block_) + 1, panel.vectors)
                             : nullptr});
    }
  }

  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    constexpr int64_t kPerThread = 1 << 19;  // multiplications that are worth a thread
    const auto* x = static_cast<const uint16_t*>(inputs[0]);
    const auto* addend = addend_ < 0 ? nullptr : static_cast<const uint16_t*>(inputs[addend_]);
    auto* y = static_cast<uint16_t*>(outputs[0]);
    SharedParallelFor(blocks_, std::max<int64_t>(1, kPerThread / (kRowsOfTile * depth_ * columns_)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) Block(x, addend, y, i);
                      });
    return OkStatus();
  }
  // A tile reads what is added where it writes, before.
  bool may_overwrite(int i) const override { return i == addend_; }

 private:
  struct Panel {
    NarrowTile tile;  // but what depends on the rows
    int64_t column;   // its first
    NarrowTileFn run, run_longer;
  };

  void Block(const uint16_t* x, const uint16_t* addend, uint16_t* y, int64_t block) const {
    const int64_t row = block * block_ + std::min(block, longer_blocks_);
    for (const Panel& panel : panels_) {
      NarrowTile tile = panel.tile;
      const int64_t at = row * columns_ + panel.column;
      tile.x = x + row * depth_;
      tile.y = y + at;
      tile.addend = addend == nullptr ? nullptr : addend + at;
      (block < longer_blocks_ ? panel.run_longer : panel.run)(tile);
    }
  }

  const int64_t depth_, columns_;
  const int addend_;  // input of the node; -1: nothing is added
  const int64_t blocks_;
  const int64_t block_, longer_blocks_;  // rows of each; how many first ones have one more
  const ConstantForms<std::monostate>::Ref weights_;
  const std::vector<float> bias_;
  std::vector<Panel> panels_;
};

// [depth, columns] as the tiles read them, those of column c times factors[c] where there are
// factors.
StatusOr<Tensor> PackedFilter(const Tensor& filter, int64_t depth, int64_t columns,
                              std::span<const float> factors, Allocator* allocator) {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{NarrowPanels(columns).Elements(depth / 2)}));
  const auto fill = [&](Tensor& packed) -> Status {
    ASSIGN_OR_RETURN(const Tensor scaled, ScaledColumns(filter, factors));
    PackPairs(static_cast<const uint16_t*>(scaled.raw()), columns, depth, depth / 2,
              NarrowPanels(columns), static_cast<uint16_t*>(packed.raw()));
    return OkStatus();
  };
  return KeptOrMade(filter, absl::StrCat("panels of pairs ", depth, " ", columns), factors,
                    Dtype::kBfloat16, shape, allocator, fill);
}

// Every tile of rows reads all weights: from the core's cache, or the library is as fast (Zen 5).
bool WeightsStay(const ConvProblem& p) {
  return p.in_depth < NearCacheBytes(1 << 20) / (p.out_depth * int64_t{sizeof(uint16_t)});
}

}  // namespace

bool NarrowProduct::Suits(const ConvProblem& p) {
  const auto one = [](int64_t n) { return n == 1; };
  return NarrowTileOf(1, 1) != nullptr && CpuHas(CpuFeature::kDotBfloat16) &&
         Isa().level == IsaLevel::kAvx512 && p.channels_last && p.groups == 1 &&
         std::ranges::all_of(p.kernel, one) && std::ranges::all_of(p.strides, one) &&
         !p.is_padded() && p.in_depth % 2 == 0 && p.out_depth % 2 == 0 && WeightsStay(p);
}

StatusOr<std::unique_ptr<BoundKernel>> NarrowProduct::Bind(const ConvProblem& p,
                                                           const Tensor& filter,
                                                           std::span<const float> factors,
                                                           const float* bias, int addend,
                                                           const FusedOps& fused) {
  TiledSteps steps;
  if (!ClampingStepsOf(fused, bias, addend, &steps)) return nullptr;
  const int64_t rows = p.output.num_elements() / p.out_depth;
  const auto pack = [&](Allocator* a) -> StatusOr<Tensor> {
    ASSIGN_OR_RETURN(Tensor packed, PackedFilter(filter, p.in_depth, p.out_depth, factors, a));
    DropOriginal(filter);
    return packed;
  };
  ASSIGN_OR_RETURN(auto weights, packed_.Get(filter, {}, true, KeptAllocator(), pack));
  std::vector<float> start(static_cast<size_t>(NarrowPanels(p.out_depth).vectors * kLanesOfTile),
                           0.0f);
  if (steps.has_bias) std::copy_n(bias, p.out_depth, start.begin());
  return std::make_unique<BoundNarrowProduct>(rows, p.in_depth, p.out_depth, steps, addend,
                                              std::move(weights), std::move(start));
}

}  // namespace smelt::nn
