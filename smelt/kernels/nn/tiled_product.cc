#include "smelt/kernels/nn/tiled_product.h"

#include <algorithm>
#include <vector>

#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/nn/tiled_steps.h"

namespace smelt::nn {
namespace {

// Multiplications that are worth a thread.
constexpr int64_t kProductPerThread = 1 << 18;
// A sum is cut into parts, so that a tile's rows stay in the nearest cache while panels go by.
constexpr int64_t kMostPart = 1024;

// Rows by panels. A block of rows stays in the core's cache while all panels go by; those come from
// farther away, so that each is asked for while the one before it is multiplied.
class BoundTiledProduct final : public BoundKernel {
 public:
  BoundTiledProduct(int64_t rows, int64_t k, int64_t n, const TiledSteps& steps, int addend,
                    std::unique_ptr<const TiledWeights> weights, std::vector<float> bias)
      : k_(k),
        n_(n),
        steps_(steps),
        addend_(addend),
        panels_(n),
        weights_(std::move(weights)),
        bias_(std::move(bias)),
        zeros_(static_cast<size_t>(panels_.widest * panels_.lanes), 0.0f),
        parts_((k + kMostPart - 1) / kMostPart) {
    for (int64_t m = 0; m < kConvTilePixels; ++m) places_[m] = m * n;
    const int64_t tile_rows = panels_.pixels;
    const int64_t strips = (rows + tile_rows - 1) / tile_rows;
    for (int64_t i = 0; i <= strips; ++i) strips_.push_back(rows * i / strips);
    const int64_t strip = tile_rows * (k / parts_ + 1) * int64_t{sizeof(float)};
    const int64_t most = std::max<int64_t>(8, NearCacheBytes(1 << 20) / 4 * 3 / strip);
    blocks_ = (strips + most - 1) / most;
    // Threads that would wait for one of them take parts of the rows.
    const auto uneven = [&] {
      const int64_t units = blocks_ * panels_.count, threads = Threads();
      return (units + threads - 1) / threads * threads * 32 > units * 33;
    };
    constexpr int64_t kLeastStrips = 4;
    while (uneven() && strips / (blocks_ + 1) >= kLeastStrips) ++blocks_;
    const int64_t unit = rows / blocks_ * k * panels_.widest * panels_.lanes;
    grain_ = std::max<int64_t>(1, kProductPerThread / std::max<int64_t>(1, unit));
  }

  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    const auto* x = static_cast<const float*>(inputs[0]);
    const auto* addend = !steps_.adds ? nullptr : static_cast<const float*>(inputs[addend_]);
    auto* y = static_cast<float*>(outputs[0]);
    ASSIGN_OR_RETURN(const float* packed, weights_->ForRun());
    if (packed == nullptr) {
      PackAndRun(x, addend, y);
      return OkStatus();
    }
    const auto weights = [&](int64_t part, int64_t panel) {
      return packed + panels_.First(panel) * panels_.lanes * k_ + Part(part) * Width(panel);
    };
    SharedParallelFor(blocks_ * panels_.count, grain_, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t block = begin / panels_.count;
        const int64_t from = begin % panels_.count;
        const int64_t to = std::min(panels_.count, from + end - begin);
        for (int64_t part = 0; part < parts_; ++part) {
          for (int64_t i = from; i < to; ++i) {
            const float* next = i + 1 < to                ? weights(part, i + 1)
                                : part + 1 < parts_       ? weights(part + 1, from)
                                : begin + to - from < end ? weights(0, 0)
                                                          : nullptr;
            Panel(x, addend, y, block, part, i, weights(part, i), next);
          }
        }
        begin += to - from;
      }
    });
    return OkStatus();
  }
  // A tile reads what is added where it writes, before.
  bool may_overwrite(int i) const override { return steps_.adds && i == addend_; }

 private:
  int64_t Part(int64_t part) const { return k_ * part / parts_; }  // where its sum begins
  // Those of a part of a panel's sums, and what a row of them has.
  int64_t Width(int64_t panel) const {
    return (panels_.First(panel + 1) - panels_.First(panel)) * panels_.lanes;
  }

  // Each thread packs a few panels at a time, which its cache holds beside a block of rows.
  void PackAndRun(const float* x, const float* addend, float* y) const {
    const int64_t row = panels_.widest * panels_.lanes, part_rows = k_ / parts_ + 1;
    const int64_t most = NearCacheBytes(1 << 20) / 4 / (part_rows * row * int64_t{sizeof(float)});
    const int64_t groups = GroupsOfPanels(panels_.count, std::max<int64_t>(1, most));
    ParallelFor(groups, 1, [&](int64_t begin, int64_t end) {
      const auto own = std::make_unique_for_overwrite<float[]>(
          static_cast<size_t>((panels_.count / groups + 1) * part_rows * row));
      for (int64_t g = begin; g < end; ++g) {
        const int64_t first = panels_.count * g / groups, last = panels_.count * (g + 1) / groups;
        for (int64_t part = 0; part < parts_; ++part) {
          weights_->Pack(first, last, Part(part), Part(part + 1), own.get());
          for (int64_t block = 0; block < blocks_; ++block) {
            const float* weights = own.get();
            for (int64_t i = first; i < last; ++i) {
              Panel(x, addend, y, block, part, i, weights, nullptr);
              weights += (Part(part + 1) - Part(part)) * Width(i);
            }
          }
        }
      }
    });
  }

  // A block's rows of a panel. `next`: the weights that are read next, as many.
  void Panel(const float* x, const float* addend, float* y, int64_t block, int64_t part,
             int64_t panel, const float* weights, const float* next) const {
    const auto strips = static_cast<int64_t>(strips_.size()) - 1;
    const int64_t first = strips * block / blocks_, last = strips * (block + 1) / blocks_;
    const int64_t column = panels_.First(panel) * panels_.lanes, width = Width(panel);
    const bool begins = part == 0, ends = part + 1 == parts_;
    const float* row[kConvTilePixels];
    ConvTile tile;
    tile.pixels = row;
    tile.runs = 1;
    tile.run = Part(part + 1) - Part(part);
    tile.weights = weights;
    tile.bias = begins ? bias_.data() + column : zeros_.data();
    tile.places = places_;
    tile.columns = std::min(width, n_ - column);
    tile.clamps = ends && steps_.clamps;
    tile.low = steps_.low, tile.high = steps_.high;
    const int64_t bytes = tile.run * width * int64_t{sizeof(float)};
    const int64_t share = (bytes + last - first - 1) / (last - first);
    const auto* ahead = reinterpret_cast<const char*>(next);
    tile.ahead_step = next != nullptr ? (share + tile.run - 1) / tile.run : 0;
    const bool acts = ends && steps_.act != nullptr;
    for (int64_t s = first; s < last; ++s) {
      const int64_t r = strips_[static_cast<size_t>(s)];
      const int64_t rows = strips_[static_cast<size_t>(s + 1)] - r;
      for (int64_t m = 0; m < rows; ++m) row[m] = x + (r + m) * k_ + Part(part);
      const int64_t at = r * n_ + column;
      tile.y = y + at;
      tile.addend = !begins ? tile.y : addend == nullptr ? nullptr : addend + at;
      tile.ahead = ahead;
      if (next != nullptr) ahead += share;
      IsaConv().tile[rows - 1][width / panels_.lanes - 1](tile);
      if (!acts) continue;
      for (int64_t m = 0; m < rows; ++m) {
        float* results = tile.y + m * n_;
        steps_.act(results, results, tile.columns, steps_.alpha);
      }
    }
  }

  const int64_t k_, n_;
  int64_t places_[kConvTilePixels];
  const TiledSteps steps_;
  const int addend_;  // input of the node
  const TiledPanels panels_;
  const std::unique_ptr<const TiledWeights> weights_;
  const std::vector<float> bias_, zeros_;  // of all panels, of one
  const int64_t parts_;                    // of each sum
  std::vector<int64_t> strips_;            // by strip of rows, a tile's: the first
  int64_t blocks_ = 1;                     // of strips
  int64_t grain_ = 1;                      // panels of a block
};

}  // namespace

bool TiledProduct::Wants(const MatMulProblem& p) {
  constexpr int64_t kLeastRows = 32, kLeastDepth = 48;
  const int64_t panel = kConvTileVecs * IsaConv().lanes;
  // Columns of which the last vector of zeros is a small part.
  return Isa().level != IsaLevel::kBaseline && !p.transpose_a && p.batches_b() == 1 &&
         p.batches() * p.m >= kLeastRows && p.k >= kLeastDepth &&
         (p.n % IsaConv().lanes == 0 ? p.n >= panel : p.n >= 4 * panel);
}

StatusOr<std::unique_ptr<BoundKernel>> TiledProduct::Bind(const MatMulProblem& p,
                                                          const Tensor& weights, const float* bias,
                                                          int addend, const FusedOps& fused) {
  TiledSteps steps;
  if (!TiledStepsOf(fused, bias, &steps)) return nullptr;
  ASSIGN_OR_RETURN(auto packed, TiledWeights::Of(packed_, weights, p.k, p.n, p.transpose_b, {}));
  return std::make_unique<BoundTiledProduct>(p.batches() * p.m, p.k, p.n, steps, addend,
                                             std::move(packed),
                                             PaddedBias(steps.has_bias ? bias : nullptr, p.n));
}

}  // namespace smelt::nn
