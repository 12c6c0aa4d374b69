#include "smelt/kernels/nn/streamed_conv.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/kept_form.h"
#include "smelt/kernels/common/later_form.h"
#include "smelt/kernels/common/read_once.h"
#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/nn/tiled_panels.h"
#include "smelt/kernels/nn/tiled_steps.h"

namespace smelt::nn {
namespace {

// Taps of a window that has more are no longer worth a table.
constexpr int64_t kMostTaps = 64;

int64_t CoreCache() { return NearCacheBytes(int64_t{1} << 20); }

int64_t CeilOfQuotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t ProductOf(const Dims& dims) {
  int64_t product = 1;
  for (const int64_t d : dims) product *= d;
  return product;
}

// How weights [taps, depth, channels] are cut: the channels into panels, so many that a few threads
// have as many each, the depth into blocks of which one, with all taps, is a quarter of a core's
// cache. Weights lie as [panel, block, tap, depth of the block, channels of the panel].
struct StreamCut {
  StreamCut(int64_t taps, int64_t depth, int64_t channels)
      : lanes(IsaConv().lanes),
        vectors(CeilOfQuotient(channels, lanes)),
        widest(WidestPanel(vectors)) {
    constexpr int64_t kEven = 4;
    panels = CeilOfQuotient(vectors, widest);
    if (panels > kEven) panels = std::min(vectors, CeilOfQuotient(panels, kEven) * kEven);
    const int64_t row = widest * lanes * static_cast<int64_t>(sizeof(float));
    const int64_t most = std::max<int64_t>(CoreCache() / 4 / row / taps, 16);
    // Whole lines of pixels.
    block = std::min(depth,
                     CeilOfQuotient(CeilOfQuotient(depth, CeilOfQuotient(depth, most)), 16) * 16);
    blocks = CeilOfQuotient(depth, block);
  }
  // The vector that panel i begins with; that of panel `panels` is the last one's end.
  int64_t First(int64_t i) const { return vectors * i / panels; }

  int64_t lanes, vectors;
  int64_t widest, panels;  // vectors of a panel, at most; how many
  int64_t block, blocks;
};

// Weights as they lie, [taps, depth, channels], and what those of a channel are multiplied by.
struct PlainFilter {
  const float* weights;
  int64_t taps, depth, channels;
  std::span<const float> factors;  // empty: nothing
};

// Block `block` of a panel, zeros behind the last channel. The end of it.
float* PackBlock(const PlainFilter& f, const StreamCut& cut, int64_t panel, int64_t block,
                 float* to) {
  const int64_t from = cut.First(panel) * cut.lanes;
  const int64_t step = cut.First(panel + 1) * cut.lanes - from;
  const int64_t width = std::min(step, f.channels - from);
  const int64_t first = block * cut.block, last = std::min(f.depth, first + cut.block);
  for (int64_t tap = 0; tap < f.taps; ++tap) {
    for (int64_t r = first; r < last; ++r, to += step) {
      const float* row = f.weights + (tap * f.depth + r) * f.channels + from;
      if (r + kRowsAhead < last) PrefetchRow(row + kRowsAhead * f.channels, width);
      if (f.factors.empty()) {
        std::copy_n(row, width, to);
      } else {
        const float* factors = f.factors.data() + from;
        for (int64_t c = 0; c < width; ++c) to[c] = row[c] * factors[c];
      }
      std::fill(to + width, to + step, 0.0f);
    }
  }
  return to;
}

StatusOr<Tensor> PackStreamed(const Tensor& filter, int64_t taps, int64_t depth, int64_t channels,
                              std::span<const float> factors, Allocator* allocator) {
  const StreamCut cut(taps, depth, channels);
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{taps * depth, cut.vectors * cut.lanes}));
  const PlainFilter plain = {filter.data<float>(), taps, depth, channels, factors};
  const auto fill = [&](Tensor& packed) {
    float* const to = packed.data<float>();
    ParallelFor(cut.panels, 1, [&](int64_t begin, int64_t end) {
      float* at = to + cut.First(begin) * cut.lanes * taps * depth;
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t b = 0; b < cut.blocks; ++b) at = PackBlock(plain, cut, i, b, at);
      }
    });
    DropOriginal(filter);
    return OkStatus();
  };
  return KeptOrMade(filter,
                    absl::StrCat("streams ", taps, " ", depth, " ", channels, " ", cut.lanes, " ",
                                 cut.panels, " ", cut.block),
                    factors, Dtype::kFloat, shape, allocator, fill);
}

// The pixels of the result in tiles.
struct StreamTiles {
  struct Tile {
    int64_t first = 0;  // in `places`
    int pixels = 0;
    int64_t offsets = 0;  // where its own begin
    int64_t taps = 0;     // that count
  };
  std::vector<Tile> tiles;
  std::vector<int64_t> places;  // by pixel: where it lies in the result
  // By tile: [taps, its pixels]: where the tap's pixel lies in the image; kBeside: beside it;
  // kNone: the tap is beside the image for all of them.
  std::vector<int64_t> offsets;
  static constexpr int64_t kBeside = -1, kNone = -2;
};

StreamTiles MakeStreamTiles(const ConvProblem& p, int most_pixels) {
  const int spatial = p.spatial();
  const int64_t taps = ProductOf(p.kernel), image = ProductOf(p.out);
  const int64_t image_floats = ProductOf(p.in) * p.in_depth;
  const auto offset = [&](int64_t pixel, int64_t tap) {
    int64_t at = 0, step = p.in_depth, place = pixel % image;
    for (int d = spatial; d-- > 0;) {
      const auto s = static_cast<size_t>(d);
      const int64_t in =
          place % p.out[s] * p.strides[s] - p.pad_before[s] + tap % p.kernel[s] * p.dilations[s];
      if (in < 0 || in >= p.in[s]) return StreamTiles::kBeside;
      at += in * step;
      step *= p.in[s];
      place /= p.out[s];
      tap /= p.kernel[s];
    }
    return pixel / image * image_floats + at;
  };
  struct Pixel {
    uint64_t beside;  // a bit for each tap
    int64_t number;
  };
  static_assert(kMostTaps <= 64);
  std::vector<Pixel> pixels(static_cast<size_t>(p.batch * image));
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = {0, static_cast<int64_t>(i)};
    for (int64_t t = 0; t < taps; ++t) {
      if (offset(pixels[i].number, t) < 0) pixels[i].beside |= uint64_t{1} << t;
    }
  }
  std::stable_sort(pixels.begin(), pixels.end(),
                   [](const Pixel& a, const Pixel& b) { return a.beside < b.beside; });
  // Tiles that cost least in all. What a tile of few pixels takes is reading weights.
  constexpr int64_t kLeastPixels = 4;
  const size_t n = pixels.size();
  std::vector<int64_t> cost(n + 1, std::numeric_limits<int64_t>::max());
  std::vector<int> last(n + 1, 0);
  cost[0] = 0;
  for (size_t from = 0; from < n; ++from) {
    uint64_t beside = ~uint64_t{0};
    for (int m = 1; m <= most_pixels && from + static_cast<size_t>(m) <= n; ++m) {
      const size_t to = from + static_cast<size_t>(m);
      beside &= pixels[to - 1].beside;
      const int64_t left = taps - __builtin_popcountll(beside);
      const int64_t whole = cost[from] + (4 * std::max<int64_t>(m, kLeastPixels) + 2) * left;
      if (whole < cost[to]) cost[to] = whole, last[to] = m;
    }
  }
  StreamTiles out;
  for (size_t to = n; to > 0; to -= static_cast<size_t>(last[to])) {
    out.tiles.push_back({static_cast<int64_t>(to) - last[to], last[to]});
  }
  std::reverse(out.tiles.begin(), out.tiles.end());
  for (const Pixel& pixel : pixels) out.places.push_back(pixel.number * p.out_depth);
  for (StreamTiles::Tile& tile : out.tiles) {
    tile.offsets = static_cast<int64_t>(out.offsets.size());
    for (int64_t t = 0; t < taps; ++t) {
      bool none = true;
      for (int m = 0; m < tile.pixels; ++m) {
        out.offsets.push_back(offset(pixels[static_cast<size_t>(tile.first + m)].number, t));
        none = none && out.offsets.back() < 0;
      }
      if (none)
        out.offsets[out.offsets.size() - static_cast<size_t>(tile.pixels)] = StreamTiles::kNone;
      if (!none) ++tile.taps;
    }
  }
  return out;
}

class BoundStreamedConv final : public BoundKernel {
 public:
  BoundStreamedConv(const ConvProblem& p, const TiledSteps& steps, int addend,
                    std::unique_ptr<const LaterForm> weights, const Tensor& filter,
                    std::vector<float> factors, std::vector<float> bias)
      : steps_(steps),
        addend_(addend),
        taps_(ProductOf(p.kernel)),
        depth_(p.in_depth),
        channels_(p.out_depth),
        cut_(taps_, depth_, channels_),
        tiles_(MakeStreamTiles(p, IsaConv().tile_pixels[cut_.widest - 1])),
        weights_(std::move(weights)),
        filter_(filter),
        factors_(std::move(factors)),
        bias_(std::move(bias)),
        zeros_(static_cast<size_t>(std::max(cut_.block, cut_.widest * cut_.lanes)), 0.0f) {
    Divide(Threads());
  }

  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    const auto* x = static_cast<const float*>(inputs[0]);
    const auto* addend = !steps_.adds ? nullptr : static_cast<const float*>(inputs[addend_]);
    auto* y = static_cast<float*>(outputs[0]);
    const auto tiles = static_cast<int64_t>(tiles_.tiles.size());
    ASSIGN_OR_RETURN(const Tensor* form, weights_->ForRun());
    if (form == nullptr) {
      PackAndRun(x, addend, y);
      return OkStatus();
    }
    const float* packed = form->data<float>();
    ParallelFor(chunks_ * cut_.panels, 1, [&](int64_t begin, int64_t end) {
      FetchFirst(packed, begin % cut_.panels);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t chunk = i / cut_.panels, panel = i % cut_.panels;
        const bool more = i + 1 < end && panel + 1 < cut_.panels;
        Panel(x, packed, addend, y, panel, more, tiles * chunk / chunks_,
              tiles * (chunk + 1) / chunks_);
      }
    });
    return OkStatus();
  }
  // A tile reads what is added where it writes, before.
  bool may_overwrite(int i) const override { return steps_.adds && i == addend_; }

 private:
  // Threads take panels and, where those do not come out even, panels of a part of the tiles.
  void Divide(int threads) {
    constexpr int64_t kLeastTiles = 4;
    const auto uneven = [&] {
      const int64_t units = chunks_ * cut_.panels;
      return CeilOfQuotient(units, threads) * threads * 8 > units * 9;
    };
    const auto tiles = static_cast<int64_t>(tiles_.tiles.size());
    while (threads > 1 && uneven() && tiles / (chunks_ + 1) >= kLeastTiles) ++chunks_;
  }

  // Nobody has fetched the block that a thread begins with.
  void FetchFirst(const float* packed, int64_t panel) const {
    const int64_t column = cut_.First(panel) * cut_.lanes;
    const int64_t width = cut_.First(panel + 1) * cut_.lanes - column;
    const float* block = packed + column * taps_ * depth_;
    constexpr int64_t kLine = 64 / sizeof(float);
    for (int64_t i = 0; i < taps_ * cut_.block * width; i += kLine) {
      __builtin_prefetch(block + i, 0, 2);
    }
  }

  // Each thread packs a block at a time, which its cache holds.
  void PackAndRun(const float* x, const float* addend, float* y) const {
    const PlainFilter plain = {filter_.data<float>(), taps_, depth_, channels_, factors_};
    const auto tiles = static_cast<int64_t>(tiles_.tiles.size());
    ParallelFor(cut_.panels, 1, [&](int64_t begin, int64_t end) {
      const auto own = std::make_unique_for_overwrite<float[]>(
          static_cast<size_t>(taps_ * cut_.block * cut_.widest * cut_.lanes));
      for (int64_t panel = begin; panel < end; ++panel) {
        for (int64_t b = 0; b < cut_.blocks; ++b) {
          PackBlock(plain, cut_, panel, b, own.get());
          ConvTile tile = TileOf(own.get(), addend, y, panel, b);
          Block(x + b * cut_.block, 0, tiles, nullptr, 0, Vectors(panel), &tile);
        }
        Activate(y, panel, 0, tiles);
      }
    });
  }

  int64_t Vectors(int64_t panel) const { return cut_.First(panel + 1) - cut_.First(panel); }

  // What tiles of a block of a panel have in common.
  ConvTile TileOf(const float* weights, const float* addend, float* y, int64_t panel,
                  int64_t b) const {
    const int64_t column = cut_.First(panel) * cut_.lanes;
    const bool first = b == 0, last = b + 1 == cut_.blocks;
    ConvTile tile;
    tile.columns = std::min(Vectors(panel) * cut_.lanes, channels_ - column);
    tile.weights = weights;
    tile.y = y + column;
    tile.run = std::min(cut_.block, depth_ - b * cut_.block);
    tile.bias = first ? bias_.data() + column : zeros_.data();
    // Sums of the blocks before stand in y, with what was to be added.
    tile.addend = !first ? tile.y : addend == nullptr ? nullptr : addend + column;
    tile.fetches = first;
    tile.clamps = last && steps_.clamps;
    tile.low = steps_.low, tile.high = steps_.high;
    return tile;
  }

  // Tiles [from, to) by a panel. `more`: the panel behind it comes next.
  void Panel(const float* x, const float* packed, const float* addend, float* y, int64_t panel,
             bool more, int64_t from, int64_t to) const {
    const int64_t width = Vectors(panel) * cut_.lanes;
    const float* weights = packed + cut_.First(panel) * cut_.lanes * taps_ * depth_;
    for (int64_t b = 0; b < cut_.blocks; ++b) {
      const bool last = b + 1 == cut_.blocks;
      ConvTile tile = TileOf(weights, addend, y, panel, b);
      const float* next = weights + taps_ * tile.run * width;
      const int64_t next_floats =
          last && !more ? 0
                        : taps_ *
                              (last ? std::min(cut_.block, depth_)
                                    : std::min(cut_.block, depth_ - (b + 1) * cut_.block)) *
                              width;
      Block(x + b * cut_.block, from, to, next, next_floats, width / cut_.lanes, &tile);
      weights = next;
    }
    Activate(y, panel, from, to);
  }

  // What is left to do to a panel of the results of tiles [from, to).
  void Activate(float* y, int64_t panel, int64_t from, int64_t to) const {
    if (steps_.act == nullptr) return;
    const int64_t column = cut_.First(panel) * cut_.lanes;
    const int64_t columns = std::min(Vectors(panel) * cut_.lanes, channels_ - column);
    for (int64_t t = from; t < to; ++t) {
      const StreamTiles::Tile& of = tiles_.tiles[static_cast<size_t>(t)];
      for (int m = 0; m < of.pixels; ++m) {
        float* result = y + column + tiles_.places[static_cast<size_t>(of.first + m)];
        steps_.act(result, result, columns, steps_.alpha);
      }
    }
  }

  // Tiles [from, to) by a block of weights; together they fetch the next one.
  void Block(const float* x, int64_t from, int64_t to, const float* next, int64_t next_floats,
             int64_t vectors, ConvTile* tile) const {
    const float* where[kMostTaps * kConvTilePixels];
    tile->pixels = where;
    tile->runs = taps_;
    const auto* ahead = reinterpret_cast<const char*>(next);
    const int64_t bytes = next_floats * static_cast<int64_t>(sizeof(float));
    for (int64_t t = from; t < to; ++t) {
      const StreamTiles::Tile& of = tiles_.tiles[static_cast<size_t>(t)];
      const int64_t* offsets = tiles_.offsets.data() + of.offsets;
      for (int64_t i = 0; i < taps_ * of.pixels; ++i) {
        where[i] = offsets[i] >= 0                      ? x + offsets[i]
                   : offsets[i] == StreamTiles::kBeside ? zeros_.data()
                                                        : nullptr;
      }
      tile->places = tiles_.places.data() + of.first;
      const int64_t begin = bytes * (t - from) / (to - from);
      const int64_t end = bytes * (t + 1 - from) / (to - from);
      tile->ahead = bytes == 0 ? nullptr : ahead + begin;
      tile->ahead_step = of.taps == 0 ? 0 : CeilOfQuotient(end - begin, of.taps * tile->run);
      IsaConv().tile[of.pixels - 1][vectors - 1](*tile);
    }
  }

  const TiledSteps steps_;
  const int addend_;  // input of the node
  const int64_t taps_, depth_, channels_;
  const StreamCut cut_;
  const StreamTiles tiles_;
  const std::unique_ptr<const LaterForm> weights_;
  const Tensor filter_;
  const std::vector<float> factors_;  // by channel; empty: there are none
  const std::vector<float> bias_;     // of all panels
  const std::vector<float> zeros_;    // as long as a run, or a panel's vectors
  int64_t chunks_ = 1;
};

}  // namespace

bool StreamedConv::Suits(const ConvProblem& p) {
  if (!p.channels_last || p.groups != 1) return false;
  const int64_t taps = ProductOf(p.kernel), pixels = p.batch * ProductOf(p.out);
  constexpr int64_t kLeastPixels = 16, kLeastDepth = 48;
  if (taps > kMostTaps || pixels < kLeastPixels || p.in_depth < kLeastDepth ||
      p.out_depth < kLeastDepth) {
    return false;
  }
  // The more pixels a weight is for, the less it is waited for. Timed on layers of 7x7 and 14x14
  // pixels at batch 1 to 8 (Zen 5).
  constexpr int64_t kPixelsOfCache = 256;
  const double weights = static_cast<double>(taps * p.in_depth) * static_cast<double>(p.out_depth) *
                         static_cast<double>(sizeof(float));
  const double caches = static_cast<double>(std::max(pixels, kPixelsOfCache)) / kPixelsOfCache;
  return weights >= caches * static_cast<double>(CoreCache());
}

StatusOr<std::unique_ptr<BoundKernel>> StreamedConv::Bind(const ConvProblem& p,
                                                          const Tensor& filter,
                                                          std::span<const float> factors,
                                                          const float* bias, int addend,
                                                          const FusedOps& fused) {
  TiledSteps steps;
  if (!TiledStepsOf(fused, bias, &steps)) return nullptr;
  const int64_t taps = ProductOf(p.kernel);
  std::vector<float> own(factors.begin(), factors.end());
  const auto pack = [filter, taps, depth = p.in_depth, channels = p.out_depth, own](Allocator* a) {
    return PackStreamed(filter, taps, depth, channels, own, a);
  };
  ASSIGN_OR_RETURN(auto weights, LaterForm::Of(packed_, filter, std::monostate(), pack));
  return std::make_unique<BoundStreamedConv>(
      p, steps, addend, std::move(weights), filter, std::move(own),
      PaddedBias(steps.has_bias ? bias : nullptr, p.out_depth));
}

}  // namespace smelt::nn
