#include "smelt/kernels/nn/winograd_conv.h"

#include <algorithm>
#include <vector>

#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/kept_form.h"
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
constexpr int64_t kMostTaps = 8;  // from plane to plane

// The terms of all weights: [kWinogradTerms, panels], each panel [planes * depth, its vectors].
StatusOr<Tensor> TermsOfFilter(const Tensor& filter, std::span<const float> factors, int64_t planes,
                               int64_t depth, int64_t channels, Allocator* allocator) {
  const TiledPanels panels(channels);
  const int64_t rows = planes * depth;
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{kWinogradTerms, rows, channels}));
  const float* w = filter.data<float>();
  const auto fill = [&](Tensor& out) {
    float* to = out.data<float>();
    constexpr int64_t kGrain = 8;
    ParallelFor(rows, kGrain, [&](int64_t begin, int64_t end) {
      std::vector<float> terms(static_cast<size_t>(kWinogradTerms * channels));
      for (int64_t r = begin; r < end; ++r) {
        const float* taps[9];
        for (int64_t t = 0; t < 9; ++t) {
          taps[t] = w + ((r / depth * 9 + t) * depth + r % depth) * channels;
        }
        IsaWinograd().of_taps(taps, factors.empty() ? nullptr : factors.data(), channels,
                              terms.data(), channels);
        for (int64_t k = 0; k < kWinogradTerms; ++k) {
          for (int64_t i = 0; i < panels.count; ++i) {
            const int64_t column = panels.First(i) * panels.lanes;
            const int64_t width = panels.First(i + 1) * panels.lanes - column;
            std::copy_n(terms.data() + k * channels + column, width,
                        to + (k * channels + column) * rows + r * width);
          }
        }
      }
    });
    DropOriginal(filter);
    return OkStatus();
  };
  return KeptOrMade(filter,
                    absl::StrCat("winograd ", planes, " ", depth, " ", channels, " ", panels.lanes,
                                 " ", panels.widest),
                    factors, Dtype::kFloat, shape, allocator, fill);
}

// Images and windows of one plane or of several, which step by one from plane to plane.
struct Planes {
  explicit Planes(const ConvProblem& p) {
    if (p.spatial() < 3) return;
    in = p.in[0], out = p.out[0], taps = p.kernel[0];
    dilation = p.dilations[0], front = p.pad_before[0];
  }
  int64_t in = 1, out = 1, taps = 1, dilation = 1, front = 0;
};

// Tiles of a dimension of so many pixels whose windows' taps lie `apart`: so do the pixels of a
// tile, and as many tiles begin beside each other.
int64_t TilesOf(int64_t pixels, int64_t apart) {
  const int64_t group = kTileSide * apart;
  return pixels / group * apart + std::min(pixels % group, apart);
}
int64_t FirstOf(int64_t tile, int64_t apart) {
  return tile / apart * kTileSide * apart + tile % apart;
}

class BoundWinogradConv final : public BoundKernel {
 public:
  BoundWinogradConv(const ConvProblem& p, const TiledSteps& steps, int addend,
                    ConstantForms<std::monostate>::Ref terms, const float* bias, MakeBound plain)
      : planes_(p),
        depth_(p.in_depth),
        channels_(p.out_depth),
        in_h_(p.in[p.in.size() - 2]),
        in_w_(p.in.back()),
        out_h_(p.out[p.out.size() - 2]),
        out_w_(p.out.back()),
        top_(p.pad_before[p.in.size() - 2]),
        left_(p.pad_before.back()),
        inputs_(p.batch * planes_.in * in_h_ * in_w_ * depth_),
        apart_h_(p.dilations[p.in.size() - 2]),
        apart_w_(p.dilations.back()),
        tiles_h_(TilesOf(out_h_, apart_h_)),
        tiles_w_(TilesOf(out_w_, apart_w_)),
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
    const int64_t half = NearCacheBytes(1 << 20) / 2;
    const int64_t floats = kWinogradTerms * (planes_.in * depth_ + planes_.out * channels_);
    const int64_t weights = kWinogradTerms * planes_.taps * depth_ * channels_;
    const bool near = weights * int64_t{sizeof(float)} <= half;
    const int64_t least = (near ? kLeastTiles : 2 * kLeastTiles) / planes_.out;
    const int64_t most = std::clamp(half / (floats * int64_t{sizeof(float)}),
                                    std::max<int64_t>(1, least), kMostTiles);
    const int64_t threads = Threads();
    blocks_ = (tiles_ + most - 1) / most;
    if (blocks_ % threads != 0) blocks_ += threads - blocks_ % threads;
    blocks_ = std::min(blocks_, tiles_);
    block_ = (tiles_ + blocks_ - 1) / blocks_;
    parts_ = std::min<int64_t>(blocks_, threads);
    for (int64_t p = 0; p < kConvTilePixels; ++p) places_[p] = p * channels_;
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(parts_ * PartFloats()) * sizeof(float);
  }
  bool may_overwrite(int i) const override { return steps_.adds && i == addend_; }

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const auto* x = static_cast<const float*>(inputs[0]);
    if (!AllModest(x, inputs_)) {
      return RunInstead(plain_, "a layer has no plain form", inputs, outputs);
    }
    const auto* addend = !steps_.adds ? nullptr : static_cast<const float*>(inputs[addend_]);
    auto* y = static_cast<float*>(outputs[0]);
    ParallelFor(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        for (int64_t b = blocks_ * part / parts_; b < blocks_ * (part + 1) / parts_; ++b) {
          Block(x, terms_->data<float>(), addend, y, tiles_ * b / blocks_,
                tiles_ * (b + 1) / blocks_, static_cast<float*>(scratch) + part * PartFloats());
        }
      }
    });
    return OkStatus();
  }

 private:
  int64_t InStep() const { return planes_.in * block_ * depth_ + kApart; }
  int64_t OutStep() const { return planes_.out * block_ * channels_ + kApart; }
  int64_t PartFloats() const { return kWinogradTerms * (InStep() + OutStep()); }

  struct Place {
    int64_t column, line, image;  // of the tile's first pixel
  };
  Place PlaceOf(int64_t tile) const {
    const int64_t row = tile / tiles_w_;
    return {FirstOf(tile % tiles_w_, apart_w_), FirstOf(row % tiles_h_, apart_h_), row / tiles_h_};
  }

  // Tiles [begin, end) of all planes: all of their terms, all products, all pixels.
  void Block(const float* x, const float* weights, const float* addend, float* y, int64_t begin,
             int64_t end, float* scratch) const {
    float* terms = scratch;
    float* products = scratch + kWinogradTerms * InStep();
    const int64_t tiles = end - begin;
    for (int64_t z = 0; z < planes_.in; ++z) {
      for (int64_t i = 0; i < tiles; ++i) {
        TermsOf(x, begin + i, z, terms + (z * tiles + i) * depth_);
      }
    }
    for (int64_t k = 0; k < kWinogradTerms; ++k) {
      Product(terms + k * InStep(), weights + k * planes_.taps * depth_ * channels_, tiles,
              products + k * OutStep());
    }
    for (int64_t z = 0; z < planes_.out; ++z) {
      for (int64_t i = 0; i < tiles; ++i) {
        Finish(products + (z * tiles + i) * channels_, addend, y, begin + i, z);
      }
    }
  }

  void TermsOf(const float* x, int64_t tile, int64_t z, float* to) const {
    const Place at = PlaceOf(tile);
    const float* pixels[kPatchSide * kPatchSide];
    for (int64_t i = 0; i < kPatchSide; ++i) {
      const int64_t line = at.line - top_ + i * apart_h_;
      const float* row = line < 0 || line >= in_h_
                             ? nullptr
                             : x + ((at.image * planes_.in + z) * in_h_ + line) * in_w_ * depth_;
      for (int64_t j = 0; j < kPatchSide; ++j) {
        const int64_t column = at.column - left_ + j * apart_w_;
        const bool inside = row != nullptr && column >= 0 && column < in_w_;
        pixels[i * kPatchSide + j] = inside ? row + column * depth_ : zeros_.data();
      }
    }
    IsaWinograd().of_pixels(pixels, depth_, to, InStep());
  }

  // [planes, tiles, depth] times the weights' panels, as [planes of the result, tiles, channels].
  void Product(const float* x, const float* weights, int64_t tiles, float* y) const {
    const float* where[kMostTaps * kConvTilePixels];
    const int64_t rows = planes_.taps * depth_;  // of weights
    ConvTile tile;
    tile.pixels = where;
    tile.runs = planes_.taps, tile.run = depth_;
    tile.bias = zeros_.data();
    tile.places = places_;
    const int64_t results = planes_.out * tiles;
    const int64_t blocks = (results + panels_.pixels - 1) / panels_.pixels;
    for (int64_t i = 0; i < panels_.count; ++i) {
      const int64_t column = panels_.First(i) * panels_.lanes;
      const int64_t vectors = panels_.First(i + 1) - panels_.First(i);
      tile.weights = weights + column * rows;
      tile.columns = vectors * panels_.lanes;
      // All tiles together fetch the panel that comes next.
      const int64_t bytes = tile.columns * int64_t{sizeof(float)};
      tile.ahead_step = (bytes + blocks - 1) / blocks;
      const char* ahead = reinterpret_cast<const char*>(tile.weights + tile.columns * rows);
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = results * b / blocks, pixels = results * (b + 1) / blocks - first;
        FindRuns(x, tiles, first, pixels, where);
        tile.y = y + first * channels_ + column;
        tile.ahead = ahead + b * rows * tile.ahead_step;
        IsaConv().tile[pixels - 1][vectors - 1](tile);
      }
    }
  }

  // Where the terms lie that results [first, first + pixels) are made of, of each plane's tap.
  void FindRuns(const float* x, int64_t tiles, int64_t first, int64_t pixels,
                const float** where) const {
    if (planes_.taps == 1 && planes_.front == 0 && planes_.in == planes_.out) {
      for (int64_t p = 0; p < pixels; ++p) where[p] = x + (first + p) * depth_;
      return;
    }
    for (int64_t r = 0; r < planes_.taps; ++r, where += pixels) {
      bool none = true;
      int64_t z = first / tiles + r * planes_.dilation - planes_.front, t = first % tiles;
      for (int64_t p = 0; p < pixels; ++p) {
        const bool inside = z >= 0 && z < planes_.in;
        where[p] = inside ? x + (z * tiles + t) * depth_ : zeros_.data();
        none = none && !inside;
        if (++t == tiles) t = 0, ++z;
      }
      if (none) where[0] = nullptr;
    }
  }

  void Finish(const float* products, const float* addend, float* y, int64_t tile, int64_t z) const {
    const Place at = PlaceOf(tile);
    WinogradTile t;
    t.channels = channels_;
    t.terms = products;
    t.step = OutStep();
    t.bias = bias_.data();
    t.clamps = steps_.clamps;
    t.low = steps_.low, t.high = steps_.high;
    for (int p = 0; p < kWinogradPixels; ++p) {
      const int64_t line = at.line + p / kTileSide * apart_h_;
      const int64_t column = at.column + p % kTileSide * apart_w_;
      if (line >= out_h_ || column >= out_w_) continue;
      const int64_t plane = at.image * planes_.out + z;
      const int64_t to = ((plane * out_h_ + line) * out_w_ + column) * channels_;
      t.y[p] = y + to;
      if (addend != nullptr) t.addend[p] = addend + to;
    }
    IsaWinograd().to_pixels(t);
    if (steps_.act == nullptr) return;
    for (float* pixel : t.y) {
      if (pixel != nullptr) steps_.act(pixel, pixel, channels_, steps_.alpha);
    }
  }

  const Planes planes_;
  const int64_t depth_, channels_;
  const int64_t in_h_, in_w_, out_h_, out_w_, top_, left_;
  const int64_t inputs_;                     // floats
  const int64_t apart_h_, apart_w_;          // neighbors of a tile, and of a window
  const int64_t tiles_h_, tiles_w_, tiles_;  // of a plane
  const TiledSteps steps_;
  const int addend_;  // input of the node
  const ConstantForms<std::monostate>::Ref terms_;
  const MakeBound plain_;
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
  if (!p.channels_last || p.groups != 1 || p.spatial() < 2 || p.spatial() > 3 ||
      p.in_depth % lanes != 0 || p.out_depth % lanes != 0 || Isa().level == IsaLevel::kBaseline) {
    return false;
  }
  const size_t first = p.in.size() - 2;
  for (size_t s = 0; s < p.in.size(); ++s) {
    if (p.strides[s] != 1) return false;
    if (s >= first && p.kernel[s] != 3) return false;
  }
  const Planes planes(p);
  if (planes.taps > kMostTaps || planes.taps * p.in_depth < kLeastChannels ||
      p.out_depth < kLeastChannels) {
    return false;
  }
  const int64_t in_plane = p.batch * TilesOf(p.out[first], p.dilations[first]) *
                           TilesOf(p.out[first + 1], p.dilations[first + 1]);
  const int64_t tiles = in_plane * planes.out;
  // Half of a tile that leaves the image is for nothing.
  const int64_t pixels = p.output.num_elements() / p.out_depth;
  const int64_t weights =
      kWinogradTerms * planes.taps * p.in_depth * p.out_depth * int64_t{sizeof(float)};
  const bool near = weights <= NearCacheBytes(1 << 20);
  return tiles >= (near ? kLeastTiles : kLeastByMemory) &&
         pixels * 4 >= tiles * 3 * kWinogradPixels;
}

StatusOr<std::unique_ptr<BoundKernel>> WinogradConv::Bind(const ConvProblem& p,
                                                          const Tensor& filter,
                                                          std::span<const float> factors,
                                                          const float* bias, int addend,
                                                          const FusedOps& fused, MakeBound plain) {
  TiledSteps steps;
  if (!TiledStepsOf(fused, bias, &steps)) return nullptr;
  const auto make = [&](Allocator* a) {
    return TermsOfFilter(filter, factors, Planes(p).taps, p.in_depth, p.out_depth, a);
  };
  ASSIGN_OR_RETURN(auto terms, terms_.Get(filter, std::monostate(), true, KeptAllocator(), make));
  return std::make_unique<BoundWinogradConv>(p, steps, addend, std::move(terms),
                                             steps.has_bias ? bias : nullptr, std::move(plain));
}

}  // namespace smelt::nn
