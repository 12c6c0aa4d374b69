#include "smelt/kernels/nn/swish_int8.h"

#include <algorithm>

#include "smelt/base/parallel.h"

namespace smelt::nn {
namespace {

// Tiles of rows that meet the same block of weights one after another.
constexpr int64_t kTilesOfTask = 8;
// Multiply-adds that are worth a thread; the activation costs as much as so many of a result.
constexpr int64_t kSwishWorkOfThread = 1 << 18, kSwishWork = 160;

// As few blocks of channels as there can be, of as many vectors as the others or one less.
struct ChannelBlocks {
  int64_t vecs, count;
  explicit ChannelBlocks(int64_t channels)
      : vecs((channels + kInt8TileLanes - 1) / kInt8TileLanes),
        count((vecs + kInt8TileVecs - 1) / kInt8TileVecs) {}
  int64_t begin(int64_t i) const { return vecs * i / count; }
};

}  // namespace

SwishInt8::SwishInt8(const int8_t* weights, bool transposed, int64_t depth, int64_t channels,
                     std::span<const float> scales, const int32_t* bias, int32_t x_zero)
    : depth_(depth), channels_(channels) {
  const ChannelBlocks blocks(channels);
  const int64_t padded = blocks.vecs * kInt8TileLanes;
  weights_.resize(static_cast<size_t>(padded * depth));
  start_.resize(static_cast<size_t>(padded));
  scales_.resize(static_cast<size_t>(padded));
  for (int64_t i = 0; i < blocks.count; ++i) {
    const int64_t first = blocks.begin(i) * kInt8TileLanes;
    const int64_t lanes = blocks.begin(i + 1) * kInt8TileLanes - first;
    int8_t* to = weights_.data() + first * depth;
    for (int64_t c = 0; c < std::min(lanes, channels - first); ++c) {
      const int64_t channel = first + c;
      uint32_t sum = 0;  // it may wrap, as the sums of products do
      for (int64_t k = 0; k < depth; ++k) {
        const int8_t w =
            transposed ? weights[channel * depth + k] : weights[k * channels + channel];
        to[(k / 4 * lanes + c) * 4 + k % 4] = w;
        sum += static_cast<uint32_t>(static_cast<int32_t>(w));
      }
      const auto at = static_cast<size_t>(channel);
      start_[at] = static_cast<int32_t>(static_cast<uint32_t>(bias[channel]) -
                                        static_cast<uint32_t>(x_zero) * sum);
      scales_[at] = scales.size() == 1 ? scales[0] : scales[at];
    }
  }
}

void SwishInt8::Run(const Rows& rows, const uint8_t* x, const SwishInt8Steps& steps,
                    void* y) const {
  const ChannelBlocks blocks(channels_);
  const int64_t count = rows.count(), tiles = (count + kInt8TilePixels - 1) / kInt8TilePixels;
  const int64_t tile_work = kInt8TilePixels * channels_ * (depth_ + kSwishWork);
  const int64_t least = std::max<int64_t>(1, kSwishWorkOfThread / std::max<int64_t>(1, tile_work));
  const int64_t bytes = steps.bytes ? 1 : 4;
  const int64_t left = channels_ % kInt8TileLanes;
  const auto last = static_cast<uint16_t>(left == 0 ? 0xffff : (1 << left) - 1);
  ParallelFor(tiles, least, [&](int64_t begin, int64_t end) {
    for (int64_t from = begin; from < end; from += kTilesOfTask) {
      const int64_t to = std::min(end, from + kTilesOfTask);
      const uint8_t* pixels[kTilesOfTask * kInt8TilePixels];
      const int64_t first = count * from / tiles, beyond = count * to / tiles;
      int64_t column = first % rows.columns, line = first / rows.columns % rows.image_lines;
      int64_t image = first / rows.columns / rows.image_lines;
      for (int64_t r = first; r < beyond; ++r) {
        pixels[r - first] = x + image * rows.image + line * rows.line + column * rows.step;
        if (++column < rows.columns) continue;
        column = 0;
        if (++line < rows.image_lines) continue;
        line = 0;
        ++image;
      }
      for (int64_t i = 0; i < blocks.count; ++i) {
        const int64_t vec = blocks.begin(i), vecs = blocks.begin(i + 1) - vec;
        const int64_t channel = vec * kInt8TileLanes;
        Int8Tile tile;
        tile.groups = depth_ / 4;
        tile.weights = weights_.data() + channel * depth_;
        tile.start = start_.data() + channel;
        tile.scales = scales_.data() + channel;
        tile.steps = steps;
        tile.y_step = channels_;
        if (i + 1 == blocks.count) tile.last = last;
        for (int64_t t = from; t < to; ++t) {
          const int64_t row = count * t / tiles, end_row = count * (t + 1) / tiles;
          tile.pixels = pixels + (row - first);
          tile.y = static_cast<uint8_t*>(y) + (row * channels_ + channel) * bytes;
          SwishInt8Tile(static_cast<int>(end_row - row), static_cast<int>(vecs))(tile);
        }
      }
    }
  });
}

}  // namespace smelt::nn
