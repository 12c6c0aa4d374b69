#include "smelt/kernels/nn/winograd_conv.h"

#include <algorithm>
#include <vector>

#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/later_form.h"
#include "smelt/kernels/common/read_once.h"
#include "smelt/kernels/isa/winograd.h"
#include "smelt/kernels/nn/all_modest.h"
#include "smelt/kernels/nn/tiled_panels.h"
#include "smelt/kernels/nn/tiled_steps.h"

namespace smelt::nn {
namespace {

constexpr int64_t kTileSide = 2, kPatchSide = 4;
// Terms of neighbors a page apart would share few places of the nearest cache.
constexpr int64_t kApart = 16;

// The terms of all weights: [kWinogradTerms, panels], each panel [depth, its vectors].
StatusOr<Tensor> TermsOfFilter(const Tensor& filter, std::span<const float> factors, int64_t depth,
                               int64_t channels, Allocator* allocator) {
  const TiledPanels panels(channels);
  ASSIGN_OR_RETURN(
      Tensor out, Tensor::Make(Dtype::kFloat, Shape({kWinogradTerms, depth, channels}), allocator));
  const float* w = filter.data<float>();
  float* to = out.data<float>();
  constexpr int64_t kGrain = 8;
  ParallelFor(depth, kGrain, [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(kWinogradTerms * channels));
    for (int64_t d = begin; d < end; ++d) {
      const float* taps[9];
      for (int64_t t = 0; t < 9; ++t) taps[t] = w + (t * depth + d) * channels;
      IsaWinograd().of_taps(taps, factors.empty() ? nullptr : factors.data(), channels, row.data(),
                            channels);
      for (int64_t k = 0; k < kWinogradTerms; ++k) {
        for (int64_t i = 0; i < panels.count; ++i) {
          const int64_t column = panels.First(i) * panels.lanes;
          const int64_t width = panels.First(i + 1) * panels.lanes - column;
          std::copy_n(row.data() + k * channels + column, width,
                      to + (k * channels + column) * depth + d * width);
        }
      }
    }
  });
  DropOriginal(filter);
  return out;
}

class BoundWinogradConv final : public BoundKernel {
 public:
  BoundWinogradConv(const ConvProblem& p, const TiledSteps& steps, int addend,
                    std::unique_ptr<const LaterForm> terms, const float* bias,
                    std::unique_ptr<BoundKernel> plain)
      : depth_(p.in_depth),
        channels_(p.out_depth),
        in_h_(p.in[0]),
        in_w_(p.in[1]),
        out_h_(p.out[0]),
        out_w_(p.out[1]),
        top_(p.pad_before[0]),
        left_(p.pad_before[1]),
        inputs_(p.batch * in_h_ * in_w_ * depth_),
        tiles_h_((out_h_ + 1) / kTileSide),
        tiles_w_((out_w_ + 1) / kTileSide),
        tiles_(p.batch * tiles_h_ * tiles_w_),
        steps_(steps),
        addend_(addend),
        terms_(std::move(terms)),
        plain_(std::move(plain)),
        panels_(channels_),
        bias_(PaddedBias(bias, channels_)),
        zeros_(static_cast<size_t>(std::max(depth_, panels_.widest * panels_.lanes)), 0.0f) {
    // The terms of a block's tiles stay in the core's cache, but all weights go by for each block.
    constexpr int64_t kLeastTiles = 32, kMostTiles = 128;
    const int64_t bytes = kWinogradTerms * (depth_ + channels_) * int64_t{sizeof(float)};
    const int64_t fit = NearCacheBytes(1 << 20) / 2 / bytes;
    const int64_t weights = kWinogradTerms * depth_ * channels_ * int64_t{sizeof(float)};
    const int64_t least = weights > NearCacheBytes(1 << 20) / 2 ? 2 * kLeastTiles : kLeastTiles;
    const int64_t most = std::clamp(fit, least, kMostTiles);
    const int64_t threads = Threads();
    blocks_ = (tiles_ + most - 1) / most;
    if (blocks_ % threads != 0) blocks_ += threads - blocks_ % threads;
    blocks_ = std::min(blocks_, tiles_);
    block_ = (tiles_ + blocks_ - 1) / blocks_;
    parts_ = std::min<int64_t>(blocks_, threads);
    for (int64_t p = 0; p < kConvTilePixels; ++p) places_[p] = p * channels_;
  }

  size_t scratch_bytes() const override {
    return std::max(static_cast<size_t>(parts_ * PartFloats()) * sizeof(float),
                    plain_->scratch_bytes());
  }
  bool may_overwrite(int i) const override {
    return steps_.adds && i == addend_ && plain_->may_overwrite(i);
  }

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const auto* x = static_cast<const float*>(inputs[0]);
    ASSIGN_OR_RETURN(const Tensor* terms, terms_->ForRun());
    if (terms == nullptr || !AllModest(x, inputs_)) return plain_->Run(inputs, outputs, scratch);
    const auto* addend = !steps_.adds ? nullptr : static_cast<const float*>(inputs[addend_]);
    auto* y = static_cast<float*>(outputs[0]);
    ParallelFor(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        for (int64_t b = blocks_ * part / parts_; b < blocks_ * (part + 1) / parts_; ++b) {
          Block(x, terms->data<float>(), addend, y, tiles_ * b / blocks_,
                tiles_ * (b + 1) / blocks_, static_cast<float*>(scratch) + part * PartFloats());
        }
      }
    });
    return OkStatus();
  }

 private:
  int64_t InStep() const { return block_ * depth_ + kApart; }
  int64_t OutStep() const { return block_ * channels_ + kApart; }
  int64_t PartFloats() const { return kWinogradTerms * (InStep() + OutStep()); }

  struct Place {
    int64_t column, line, image;  // of the tile's first pixel
  };
  Place PlaceOf(int64_t tile) const {
    const int64_t row = tile / tiles_w_;
    return {tile % tiles_w_ * kTileSide, row % tiles_h_ * kTileSide, row / tiles_h_};
  }

  // Tiles [begin, end): all of their terms, all products, all pixels.
  void Block(const float* x, const float* weights, const float* addend, float* y, int64_t begin,
             int64_t end, float* scratch) const {
    float* terms = scratch;
    float* products = scratch + kWinogradTerms * InStep();
    const int64_t tiles = end - begin;
    for (int64_t i = 0; i < tiles; ++i) TermsOf(x, begin + i, terms + i * depth_);
    for (int64_t k = 0; k < kWinogradTerms; ++k) {
      Product(terms + k * InStep(), weights + k * depth_ * channels_, tiles,
              products + k * OutStep());
    }
    for (int64_t i = 0; i < tiles; ++i) Finish(products + i * channels_, addend, y, begin + i);
  }

  void TermsOf(const float* x, int64_t tile, float* to) const {
    const Place at = PlaceOf(tile);
    const float* pixels[kPatchSide * kPatchSide];
    for (int64_t i = 0; i < kPatchSide; ++i) {
      const int64_t line = at.line - top_ + i;
      const float* row =
          line < 0 || line >= in_h_ ? nullptr : x + (at.image * in_h_ + line) * in_w_ * depth_;
      for (int64_t j = 0; j < kPatchSide; ++j) {
        const int64_t column = at.column - left_ + j;
        const bool inside = row != nullptr && column >= 0 && column < in_w_;
        pixels[i * kPatchSide + j] = inside ? row + column * depth_ : zeros_.data();
      }
    }
    IsaWinograd().of_pixels(pixels, depth_, to, InStep());
  }

  // [tiles, depth] times the weights' panels, as [tiles, channels].
  void Product(const float* x, const float* weights, int64_t tiles, float* y) const {
    const float* where[kConvTilePixels];
    ConvTile tile;
    tile.pixels = where;
    tile.runs = 1, tile.run = depth_;
    tile.bias = zeros_.data();
    tile.places = places_;
    const int64_t blocks = (tiles + panels_.pixels - 1) / panels_.pixels;
    for (int64_t i = 0; i < panels_.count; ++i) {
      const int64_t column = panels_.First(i) * panels_.lanes;
      const int64_t vectors = panels_.First(i + 1) - panels_.First(i);
      tile.weights = weights + column * depth_;
      tile.columns = vectors * panels_.lanes;
      // All tiles together fetch the panel that comes next.
      const int64_t row = tile.columns * int64_t{sizeof(float)};
      tile.ahead_step = (row + blocks - 1) / blocks;
      const char* ahead = reinterpret_cast<const char*>(tile.weights + tile.columns * depth_);
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = tiles * b / blocks, pixels = tiles * (b + 1) / blocks - first;
        for (int64_t p = 0; p < pixels; ++p) where[p] = x + (first + p) * depth_;
        tile.y = y + first * channels_ + column;
        tile.ahead = ahead + b * depth_ * tile.ahead_step;
        IsaConv().tile[pixels - 1][vectors - 1](tile);
      }
    }
  }

  void Finish(const float* products, const float* addend, float* y, int64_t tile) const {
    const Place at = PlaceOf(tile);
    WinogradTile t;
    t.channels = channels_;
    t.terms = products;
    t.step = OutStep();
    t.bias = bias_.data();
    t.clamps = steps_.clamps;
    t.low = steps_.low, t.high = steps_.high;
    for (int p = 0; p < kWinogradPixels; ++p) {
      const int64_t line = at.line + p / kTileSide, column = at.column + p % kTileSide;
      if (line >= out_h_ || column >= out_w_) continue;
      const int64_t to = ((at.image * out_h_ + line) * out_w_ + column) * channels_;
      t.y[p] = y + to;
      if (addend != nullptr) t.addend[p] = addend + to;
    }
    IsaWinograd().to_pixels(t);
    if (steps_.act == nullptr) return;
    for (float* pixel : t.y) {
      if (pixel != nullptr) steps_.act(pixel, pixel, channels_, steps_.alpha);
    }
  }

  const int64_t depth_, channels_;
  const int64_t in_h_, in_w_, out_h_, out_w_, top_, left_;
  const int64_t inputs_;  // floats
  const int64_t tiles_h_, tiles_w_, tiles_;
  const TiledSteps steps_;
  const int addend_;  // input of the node
  const std::unique_ptr<const LaterForm> terms_;
  const std::unique_ptr<BoundKernel> plain_;
  const TiledPanels panels_;
  const std::vector<float> bias_, zeros_;
  int64_t blocks_ = 1, block_ = 1;  // of tiles; the most that one has
  int64_t parts_ = 1;
  int64_t places_[kConvTilePixels];
};

}  // namespace

bool WinogradConv::Suits(const ConvProblem& p) {
  // What is added to turn pixels into terms and back is worth it for as many channels, and reading
  // weights, of which there are 16 for 9, for as many tiles: more where they come from memory.
  constexpr int64_t kLeastChannels = 32, kLeastTiles = 32, kLeastByMemory = 96;
  const int64_t lanes = IsaWinograd().lanes;
  if (!p.channels_last || p.groups != 1 || p.spatial() != 2 || p.in_depth < kLeastChannels ||
      p.out_depth < kLeastChannels || p.in_depth % lanes != 0 || p.out_depth % lanes != 0 ||
      Isa().level == IsaLevel::kBaseline) {
    return false;
  }
  for (size_t s = 0; s < 2; ++s) {
    if (p.kernel[s] != 3 || p.strides[s] != 1 || p.dilations[s] != 1) return false;
  }
  const int64_t tiles = p.batch * ((p.out[0] + 1) / kTileSide) * ((p.out[1] + 1) / kTileSide);
  // Half of a tile that leaves the image is for nothing.
  const int64_t pixels = p.batch * p.out[0] * p.out[1];
  const int64_t weights = kWinogradTerms * p.in_depth * p.out_depth * int64_t{sizeof(float)};
  const bool near = weights <= NearCacheBytes(1 << 20);
  return tiles >= (near ? kLeastTiles : kLeastByMemory) &&
         pixels * 4 >= tiles * 3 * kWinogradPixels;
}

StatusOr<std::unique_ptr<BoundKernel>> WinogradConv::Bind(
    const ConvProblem& p, const Tensor& filter, std::span<const float> factors, const float* bias,
    int addend, const FusedOps& fused, std::unique_ptr<BoundKernel> plain) {
  TiledSteps steps;
  if (!TiledStepsOf(fused, bias, &steps)) return nullptr;
  std::vector<float> own(factors.begin(), factors.end());
  const auto make = [filter, own = std::move(own), depth = p.in_depth, channels = p.out_depth](
                        Allocator* a) { return TermsOfFilter(filter, own, depth, channels, a); };
  ASSIGN_OR_RETURN(auto terms,
                   LaterForm::Of(terms_, filter, std::monostate(), make, /*kept=*/false));
  return std::make_unique<BoundWinogradConv>(p, steps, addend, std::move(terms),
                                             steps.has_bias ? bias : nullptr, std::move(plain));
}

}  // namespace smelt::nn
