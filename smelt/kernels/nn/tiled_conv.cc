#include "smelt/kernels/nn/tiled_conv.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/line_kernel.h"
#include "smelt/kernels/nn/tiled_steps.h"

namespace smelt::nn {
namespace {

// Multiplications that are worth a thread.
constexpr int64_t kTiledPerThread = 1 << 17;
// Runs of a window that has more are no longer worth a list of pointers.
constexpr int64_t kMostRuns = 128;

// Three spatial dimensions, the first ones 1 where there are fewer; where the window is one pixel
// and steps by one, all pixels are one row.
struct TiledShape {
  TiledShape(const ConvProblem& p, bool placed) : depth(p.in_depth), channels(p.out_depth) {
    const size_t missing = 3 - p.in.size();
    int64_t image = 1;
    flat = !placed;
    for (size_t d = 0; d < 3; ++d) {
      if (d < missing) continue;
      const size_t s = d - missing;
      in[d] = p.in[s], out[d] = p.out[s], kernel[d] = p.kernel[s];
      stride[d] = p.strides[s], dilation[d] = p.dilations[s], pad[d] = p.pad_before[s];
      image *= p.out[s];
      flat = flat && kernel[d] == 1 && stride[d] == 1 && in[d] == out[d] && pad[d] == 0;
    }
    batch = p.batch;
    images = p.batch;
    lines = p.spatial() == 2 ? p.out[0] : 0;
    if (flat) {
      in = out = {1, 1, batch * image};
      batch = 1;
    }
  }

  using Three = std::array<int64_t, 3>;
  int64_t batch = 1, depth, channels;
  Three in = {1, 1, 1}, out = {1, 1, 1}, kernel = {1, 1, 1};
  Three stride = {1, 1, 1}, dilation = {1, 1, 1}, pad = {0, 0, 0};

  bool flat = false;              // result pixel i is of input pixel i alone
  int64_t images = 1, lines = 0;  // as they were before all pixels became one row; no lines: 0

  int64_t pixels() const { return batch * out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

class BoundTiledConv final : public BoundKernel, public LineKernel {
 public:
  BoundTiledConv(const TiledShape& s, const TiledSteps& steps, int addend,
                 std::unique_ptr<const TiledWeights> weights, std::vector<float> bias,
                 const PixelPlaces* places)
      : s_(s),
        placed_(places != nullptr ? std::optional(*places) : std::nullopt),
        steps_(steps),
        addend_(addend),
        panels_(s.channels),
        weights_(std::move(weights)),
        bias_(std::move(bias)),
        k_(s.taps() * s.depth),
        blocks_((s.pixels() + panels_.pixels - 1) / panels_.pixels),
        block_(s.pixels() / blocks_),
        longer_blocks_(s.pixels() % blocks_),
        merges_(s.dilation[2] == 1 && s.kernel[2] > 1),
        zeros_(static_cast<size_t>(s.depth * (merges_ ? s.kernel[2] : 1)), 0.0f) {
    for (int64_t i = 0; i <= panels_.count; ++i) firsts_.push_back(panels_.First(i));
    for (int64_t p = 0; p < kConvTilePixels; ++p) places_[p] = p * s.channels;
    // What does not fit beside the weights is fetched; an activation's loop reads results anew.
    const auto beyond = [&](const TiledShape::Three& size, int64_t depth) {
      return s.batch * size[0] * size[1] * size[2] * depth * int64_t{sizeof(float)} >
             NearCacheBytes(1 << 20) / 2;
    };
    far_results_ = steps.act == nullptr && beyond(s.out, s.channels);
    // Where blocks of pixels lie one behind the other.
    far_pixels_ = s.flat && beyond(s.in, s.depth);
    // A group's weights stay in the core's cache while all pixels go by.
    const int64_t panel = k_ * panels_.widest * panels_.lanes * int64_t{sizeof(float)};
    group_ = std::clamp<int64_t>(NearCacheBytes(1 << 20) / 2 / panel, 1, panels_.count);
    const int64_t tile = k_ * panels_.widest * panels_.lanes * panels_.pixels;
    grain_ = std::max<int64_t>(1, kTiledPerThread / tile);
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
    SharedParallelFor(blocks_ * panels_.count, grain_,
                      [&](int64_t begin, int64_t end) { Tiles(x, packed, addend, y, begin, end); });
    return OkStatus();
  }
  // A tile reads what is added where it writes, before.
  bool may_overwrite(int i) const override { return steps_.adds && i == addend_; }

  const LineKernel* lines() const override {
    return s_.flat && s_.lines > 0 && weights_->made() != nullptr ? this : nullptr;
  }
  LineSizes sizes() const override {
    return {.images = s_.images,
            .in_lines = s_.lines,
            .in_bytes = LinePixels() * s_.depth * int64_t{sizeof(float)},
            .out_lines = s_.lines,
            .out_bytes = LinePixels() * s_.channels * int64_t{sizeof(float)},
            .weights = k_ * panels_.vectors * panels_.lanes * int64_t{sizeof(float)}};
  }
  LineRange Reads(LineRange out) const override { return out; }
  void MakeLines(const void* const* inputs, const void* from, int64_t image, LineRange out,
                 void* to) const override {
    const auto* x = static_cast<const float*>(from);
    auto* y = static_cast<float*>(to);
    const float* addend = nullptr;
    if (steps_.adds) {
      addend = static_cast<const float*>(inputs[addend_]) +
               (image * s_.lines + out.first) * LinePixels() * s_.channels;
    }
    const float* packed = weights_->made();
    // Lines that the next kernel reads are where the last ones were: in the core's cache.
    // Blocks as even as those of Run.
    const int64_t all = out.count() * LinePixels();
    const int64_t blocks = (all + panels_.pixels - 1) / panels_.pixels;
    for (int64_t first = 0; first < panels_.count; first += group_) {
      const int64_t last = std::min(panels_.count, first + group_);
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t begin = all * b / blocks, end = all * (b + 1) / blocks;
        FlatBlock(x + begin * s_.depth, false, packed + WeightsAt(first),
                  addend == nullptr ? nullptr : addend + begin * s_.channels,
                  y + begin * s_.channels, end - begin, first, last);
      }
    }
  }

 private:
  int64_t LinePixels() const { return s_.pixels() / (s_.images * s_.lines); }

  // A pixel of the result.
  struct Place {
    int64_t column, line, plane, image;
  };
  Place PlaceOf(int64_t pixel) const {
    const int64_t row = pixel / s_.out[2], plane = row / s_.out[1];
    return {pixel % s_.out[2], row % s_.out[1], plane % s_.out[0], plane / s_.out[0]};
  }
  // Divisions would take as long as a small tile.
  void Next(Place* place) const {
    if (++place->column < s_.out[2]) return;
    place->column = 0;
    if (++place->line < s_.out[1]) return;
    place->line = 0;
    if (++place->plane < s_.out[0]) return;
    place->plane = 0;
    ++place->image;
  }
  // The pixel that a block begins with.
  int64_t FirstPixel(int64_t block) const {
    return block * block_ + std::min(block, longer_blocks_);
  }

  // Where the weights of a panel lie behind those of the first.
  int64_t WeightsAt(int64_t panel) const {
    return firsts_[static_cast<size_t>(panel)] * panels_.lanes * k_;
  }

  // Each thread packs a group of panels at a time, for all pixels.
  void PackAndRun(const float* x, const float* addend, float* y) const {
    const int64_t groups = GroupsOfPanels(panels_.count, group_);
    ParallelFor(groups, 1, [&](int64_t begin, int64_t end) {
      const auto own = std::make_unique_for_overwrite<float[]>(
          static_cast<size_t>((panels_.count / groups + 1) * panels_.widest * panels_.lanes * k_));
      for (int64_t g = begin; g < end; ++g) {
        const int64_t first = panels_.count * g / groups, last = panels_.count * (g + 1) / groups;
        weights_->Pack(first, last, 0, k_, own.get());
        Place place = PlaceOf(0);
        for (int64_t block = 0; block < blocks_; ++block) {
          Block(x, own.get(), addend, y, block, &place, first, last);
        }
      }
    });
  }

  // Tiles [begin, end) of all, counted by group, block of pixels, panel.
  void Tiles(const float* x, const float* packed, const float* addend, float* y, int64_t begin,
             int64_t end) const {
    while (begin < end) {
      const int64_t first = begin / (group_ * blocks_) * group_;
      const int64_t panels = std::min(group_, panels_.count - first);
      const int64_t last = std::min(end, (first + panels) * blocks_);
      int64_t block = (begin - first * blocks_) / panels;
      Place place = PlaceOf(FirstPixel(block));
      int64_t from = (begin - first * blocks_) % panels;
      while (begin < last) {
        const int64_t to = std::min(panels, from + (last - begin));
        Block(x, packed + WeightsAt(first + from), addend, y, block++, &place, first + from,
              first + to);
        begin += to - from;
        from = 0;
      }
    }
  }

  // Panels [from, to), whose weights lie at `weights`, of a block of pixels, the first of which is
  // *place; moves that behind it.
  void Block(const float* x, const float* weights, const float* addend, float* y, int64_t block,
             Place* place, int64_t from, int64_t to) const {
    const int64_t first = FirstPixel(block);
    const int64_t pixels = block_ + (block < longer_blocks_ ? 1 : 0);
    const float* where[kMostRuns * kConvTilePixels];
    int64_t scattered[kConvTilePixels];
    if (s_.flat) {
      const int64_t begin = first * s_.channels;
      FlatBlock(x + first * s_.depth, far_results_, weights,
                addend == nullptr ? nullptr : addend + begin, y + begin, pixels, from, to);
      return;
    }
    ConvTile tile;
    tile.pixels = where;
    FindRuns(x, pixels, place, where, scattered, &tile);
    const int64_t begin = placed_ ? 0 : first * s_.channels;
    tile.places = placed_ ? scattered : places_;
    Panels(tile, far_results_, weights, addend == nullptr ? nullptr : addend + begin, y + begin,
           pixels, from, to);
  }

  // The same of pixels whose results are theirs alone: the first is at x, its result at y.
  void FlatBlock(const float* x, bool fetches, const float* weights, const float* addend, float* y,
                 int64_t pixels, int64_t from, int64_t to) const {
    const float* where[kConvTilePixels];
    for (int64_t p = 0; p < pixels; ++p) where[p] = x + p * s_.depth;
    ConvTile tile;
    tile.pixels = where;
    tile.run = s_.depth, tile.runs = 1;
    tile.places = places_;
    Panels(tile, fetches, weights, addend, y, pixels, from, to);
  }

  // Panels [from, to) of the pixels that `tile` tells; their results lie from y on.
  void Panels(ConvTile& tile, bool fetches, const float* weights, const float* addend, float* y,
              int64_t pixels, int64_t from, int64_t to) const {
    tile.fetches = fetches;
    tile.clamps = steps_.clamps;
    tile.low = steps_.low, tile.high = steps_.high;
    const ConvTileFn* functions = IsaConv().tile[pixels - 1];
    // All panels together fetch the pixels that come next.
    const char* ahead = nullptr;
    if (far_pixels_) {
      ahead = reinterpret_cast<const char*>(tile.pixels[pixels - 1] + s_.depth);
      tile.ahead_step = (pixels * int64_t{sizeof(float)} + to - from - 1) / (to - from);
    }
    for (int64_t i = from; i < to; ++i) {
      tile.ahead = ahead;
      ahead += k_ * tile.ahead_step;
      const int64_t vector = firsts_[static_cast<size_t>(i)];
      const int64_t vectors = firsts_[static_cast<size_t>(i + 1)] - vector;
      const int64_t column = vector * panels_.lanes;
      tile.weights = weights + (WeightsAt(i) - WeightsAt(from));
      tile.bias = bias_.data() + column;
      tile.columns = std::min(vectors * panels_.lanes, s_.channels - column);
      tile.y = y + column;
      tile.addend = addend == nullptr ? nullptr : addend + column;
      functions[vectors - 1](tile);
    }
    if (steps_.act == nullptr) return;
    const int64_t left = firsts_[static_cast<size_t>(from)] * panels_.lanes;
    const int64_t right = std::min(firsts_[static_cast<size_t>(to)] * panels_.lanes, s_.channels);
    float* results = y + left;
    if (!placed_ && right - left == s_.channels) {
      steps_.act(results, results, pixels * s_.channels, steps_.alpha);
      return;
    }
    for (int64_t p = 0; p < pixels; ++p) {
      float* result = results + tile.places[p];
      steps_.act(result, result, right - left, steps_.alpha);
    }
  }

  // Where the runs of so many pixels begin, and where their results lie if those are placed. Those
  // that lie outside of the image are zeros, or left out where they are so for all pixels. Where
  // all columns are inside, the taps of a row of the window are one run.
  void FindRuns(const float* x, int64_t pixels, Place* place, const float** where,
                int64_t* scattered, ConvTile* tile) const {
    struct Corner {  // of a pixel's window
      const float* image;
      int64_t plane, line, column;
    };
    Corner corners[kConvTilePixels];
    bool merged = merges_;
    for (int64_t p = 0; p < pixels; ++p, Next(place)) {
      Corner& at = corners[p];
      at.image = x + place->image * s_.in[0] * s_.in[1] * s_.in[2] * s_.depth;
      at.plane = place->plane * s_.stride[0] - s_.pad[0];
      at.line = place->line * s_.stride[1] - s_.pad[1];
      at.column = place->column * s_.stride[2] - s_.pad[2];
      merged = merged && at.column >= 0 && at.column + s_.kernel[2] <= s_.in[2];
      if (placed_) {
        scattered[p] = placed_->first + place->image * placed_->image +
                       place->plane * placed_->step[0] + place->line * placed_->step[1] +
                       place->column * placed_->step[2];
      }
    }
    const int64_t taps = merged ? 1 : s_.kernel[2];
    tile->run = merged ? s_.kernel[2] * s_.depth : s_.depth;
    tile->runs = s_.kernel[0] * s_.kernel[1] * taps;
    for (int64_t a = 0; a < s_.kernel[0]; ++a) {
      for (int64_t b = 0; b < s_.kernel[1]; ++b) {
        const float* rows[kConvTilePixels];
        for (int64_t p = 0; p < pixels; ++p) {
          const int64_t z = corners[p].plane + a * s_.dilation[0];
          const int64_t r = corners[p].line + b * s_.dilation[1];
          rows[p] = z < 0 || z >= s_.in[0] || r < 0 || r >= s_.in[1]
                        ? nullptr
                        : corners[p].image + (z * s_.in[1] + r) * s_.in[2] * s_.depth;
        }
        for (int64_t c = 0; c < taps; ++c, where += pixels) {
          bool none = true;
          for (int64_t p = 0; p < pixels; ++p) {
            const int64_t column = corners[p].column + c * s_.dilation[2];
            const bool inside = rows[p] != nullptr && column >= 0 && column < s_.in[2];
            where[p] = inside ? rows[p] + column * s_.depth : zeros_.data();
            none = none && !inside;
          }
          if (none) where[0] = nullptr;
        }
      }
    }
  }

  const TiledShape s_;
  const std::optional<PixelPlaces> placed_;
  const TiledSteps steps_;
  const int addend_;  // input of the node
  const TiledPanels panels_;
  const std::unique_ptr<const TiledWeights> weights_;
  const std::vector<float> bias_;  // of all panels
  const int64_t k_;
  const int64_t blocks_;                 // of neighboring pixels, through lines and images
  const int64_t block_, longer_blocks_;  // pixels of each; how many first ones have one more
  const bool merges_;
  const std::vector<float> zeros_;  // as long as a run
  int64_t places_[kConvTilePixels];
  std::vector<int64_t> firsts_;  // by panel: its first vector
  bool far_results_ = false, far_pixels_ = false;
  int64_t group_ = 1;  // panels
  int64_t grain_ = 1;  // tiles
};

}  // namespace

std::unique_ptr<BoundKernel> BindTiled(const ConvProblem& p, const TiledSteps& steps, int addend,
                                       std::unique_ptr<const TiledWeights> weights,
                                       std::vector<float> bias, const PixelPlaces* places) {
  const TiledShape shape(p, places != nullptr);
  if (shape.taps() > kMostRuns || shape.pixels() == 0) return nullptr;
  return std::make_unique<BoundTiledConv>(shape, steps, addend, std::move(weights), std::move(bias),
                                          places);
}

namespace {

int64_t PixelsOfWindow(const ConvProblem& p) {
  int64_t pixels = 1;
  for (const int64_t size : p.kernel) pixels *= size;
  return pixels;
}

}  // namespace

bool TiledConv::Takes(const ConvProblem& p, const float* bias, const FusedOps& fused) {
  TiledSteps steps;
  return p.channels_last && p.groups == 1 && p.spatial() <= 3 && PixelsOfWindow(p) <= kMostRuns &&
         TiledStepsOf(fused, bias, &steps);
}

StatusOr<std::unique_ptr<BoundKernel>> TiledConv::Bind(const ConvProblem& p, const Tensor& filter,
                                                       std::span<const float> factors,
                                                       const float* bias, int addend,
                                                       const FusedOps& fused) {
  if (!Takes(p, bias, fused)) return nullptr;
  TiledSteps steps;
  TiledStepsOf(fused, bias, &steps);
  const int64_t k = p.in_depth * PixelsOfWindow(p);
  ASSIGN_OR_RETURN(auto weights, TiledWeights::Of(packed_, filter, k, p.out_depth, false, factors));
  return BindTiled(p, steps, addend, std::move(weights),
                   PaddedBias(steps.has_bias ? bias : nullptr, p.out_depth), nullptr);
}

}  // namespace smelt::nn
