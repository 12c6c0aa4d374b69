// Depthwise convolution of floats whose channels lie innermost.
//
// Neighboring results share most of their pixels: a tile of columns loads each pixel and each
// weight of a row of the window once, and keeps its sums in registers. Where a window leaves the
// image a tile reads zeros, by a table of where each of its pixels lies.
#include <cstdint>

#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/isa/vector.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillDepthwise(ConvLoops& t);
namespace {

// Columns at once: their sums, a pixel and a row's weights stay in registers.
constexpr int kDepthwiseTile = 8;
// Pixels that a tile reads of a row of a window of its own size.
constexpr int kMostPixels = (kDepthwiseTile - 1) * 2 + 5;
// Rows of such a window.
constexpr int kMostRows = 16;
static_assert(kMostRows * kMostPixels <= kMostDepthwiseTaps * kDepthwiseTile);

// A tile of the result, all channels.
struct DepthwiseTile {
  const float* const* pixels;  // [rows, columns that are read]; nullptr: from x on
  const float* x;
  int64_t row_step;  // from x of a row to that of the next
  int64_t rows;      // of the window
  const float* weights;
  float* y;
};

// The vector that begins at the last whole vector's end would leave the row: it begins earlier, and
// a few results are computed twice.
inline __attribute__((always_inline)) int64_t VectorAt(int64_t c, int64_t channels) {
  return c + kLanes <= channels ? c : channels - kLanes;
}

template <int T>
inline __attribute__((always_inline)) void StoreTile(const DepthwiseLoop& d, Vec* sum, float* y,
                                                     int64_t n) {
  if (d.clamps) {
    const Vec low = Vec{} + d.low, high = Vec{} + d.high;
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      // NaN stays: a comparison with it is false.
      sum[t] = low > sum[t] ? low : sum[t];
      sum[t] = high < sum[t] ? high : sum[t];
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) StoreVec(y + t * n, sum[t]);
}

// T columns with windows of KW columns, S apart. `kDirect`: all pixels are inside of the image.
template <int KW, int S, int T, bool kDirect>
void TileOf(const DepthwiseLoop& d, const DepthwiseTile& tile) {
  const int64_t n = d.channels;
  constexpr int kPixels = (T - 1) * S + KW;
  for (int64_t at = 0; at < n; at += kLanes) {
    const int64_t c = VectorAt(at, n);
    Vec sum[T];
    const Vec bias = LoadVec(d.bias + c);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) sum[t] = bias;
    const float* const* pixels = tile.pixels;
    const float* row = tile.x + c;
    const float* w = tile.weights + c;
    for (int64_t r = 0; r < tile.rows; ++r) {
      Vec weight[KW];
#pragma GCC unroll 8
      for (int k = 0; k < KW; ++k) weight[k] = LoadVec(w + k * n);
#pragma GCC unroll 32
      for (int i = 0; i < kPixels; ++i) {
        const Vec pixel = LoadVec(kDirect ? row + i * n : pixels[i] + c);
#pragma GCC unroll 8
        for (int k = 0; k < KW; ++k) {
          const int from = i - k;
          if (from >= 0 && from % S == 0 && from / S < T) sum[from / S] += pixel * weight[k];
        }
      }
      if (kDirect) {
        row += tile.row_step;
      } else {
        pixels += kPixels;
      }
      w += KW * n;
    }
    StoreTile<T>(d, sum, tile.y + c, n);
  }
}

// T columns of any window. The table has the T pixels of each tap.
template <int T>
void AnyTileOf(const DepthwiseLoop& d, const DepthwiseTile& tile) {
  const int64_t n = d.channels, taps = tile.rows * d.kernel_w;
  for (int64_t at = 0; at < n; at += kLanes) {
    const int64_t c = VectorAt(at, n);
    Vec sum[T];
    const Vec bias = LoadVec(d.bias + c);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) sum[t] = bias;
    const float* const* pixels = tile.pixels;
    const float* w = tile.weights + c;
    for (int64_t k = 0; k < taps; ++k, pixels += T, w += n) {
      const Vec weight = LoadVec(w);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sum[t] += LoadVec(pixels[t] + c) * weight;
    }
    StoreTile<T>(d, sum, tile.y + c, n);
  }
}

using DepthwiseTileFn = void (*)(const DepthwiseLoop& d, const DepthwiseTile& tile);
struct DepthwiseTiles {
  DepthwiseTileFn of_columns[kDepthwiseTile];  // by columns - 1
  DepthwiseTileFn direct;                      // of kDepthwiseTile columns; nullptr: none
};

template <int KW, int S>
constexpr DepthwiseTiles kTilesOf = {
    {TileOf<KW, S, 1, false>, TileOf<KW, S, 2, false>, TileOf<KW, S, 3, false>,
     TileOf<KW, S, 4, false>, TileOf<KW, S, 5, false>, TileOf<KW, S, 6, false>,
     TileOf<KW, S, 7, false>, TileOf<KW, S, 8, false>},
    TileOf<KW, S, kDepthwiseTile, true>};
constexpr DepthwiseTiles kTilesOfAny = {{AnyTileOf<1>, AnyTileOf<2>, AnyTileOf<3>, AnyTileOf<4>,
                                         AnyTileOf<5>, AnyTileOf<6>, AnyTileOf<7>, AnyTileOf<8>},
                                        nullptr};

const DepthwiseTiles& ChooseTiles(const DepthwiseLoop& d) {
  if (d.dilation_w == 1 && d.kernel_h <= kMostRows) {
    if (d.kernel_w == 3 && d.stride_w == 1) return kTilesOf<3, 1>;
    if (d.kernel_w == 3 && d.stride_w == 2) return kTilesOf<3, 2>;
    if (d.kernel_w == 5 && d.stride_w == 1) return kTilesOf<5, 1>;
    if (d.kernel_w == 5 && d.stride_w == 2) return kTilesOf<5, 2>;
  }
  return kTilesOfAny;
}

// The taps of a window that begins at `start` which lie in [0, size).
void Inside(int64_t start, int64_t size, int64_t taps, int64_t dilation, int64_t* begin,
            int64_t* end) {
  *begin = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  *end = start >= size ? 0 : (size - start + dilation - 1) / dilation;
  if (*begin > taps) *begin = taps;
  if (*end > taps) *end = taps;
  if (*end < *begin) *end = *begin;
}

void Depthwise(const DepthwiseLoop& d, const float* x, float* y, int64_t first, int64_t last) {
  const int64_t n = d.channels;
  const DepthwiseTiles& tiles = ChooseTiles(d);
  const bool any = tiles.direct == nullptr;
  const int64_t parts = (d.out_w + kDepthwiseTile - 1) / kDepthwiseTile;
  const float* table[kMostDepthwiseTaps * kDepthwiseTile];
  for (int64_t i = first; i < last; ++i) {
    const int64_t image = i / d.out_h;
    const int64_t top = i % d.out_h * d.stride_h - d.pad_top;
    int64_t begin, end;
    Inside(top, d.in_h, d.kernel_h, d.dilation_h, &begin, &end);
    DepthwiseTile tile;
    tile.rows = end - begin;
    tile.row_step = d.dilation_h * d.in_w * n;
    tile.weights = d.weights + begin * d.kernel_w * n;
    const float* line =
        tile.rows == 0 ? x : x + (image * d.in_h + top + begin * d.dilation_h) * d.in_w * n;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t from = d.out_w * part / parts;
      const int64_t columns = d.out_w * (part + 1) / parts - from;
      const int64_t left = from * d.stride_w - d.pad_left;
      tile.y = y + (i * d.out_w + from) * n;
      tile.pixels = table;
      tile.x = line;
      if (!any) {
        const int64_t pixels = (columns - 1) * d.stride_w + d.kernel_w;
        if (columns == kDepthwiseTile && left >= 0 && left + pixels <= d.in_w) {
          tile.x = line + left * n;
          tiles.direct(d, tile);
        } else {
          const float** to = table;
          for (int64_t r = 0; r < tile.rows; ++r) {
            const float* row = line + r * tile.row_step;
            for (int64_t c = left; c < left + pixels; ++c) {
              *to++ = c >= 0 && c < d.in_w ? row + c * n : d.zeros;
            }
          }
          tiles.of_columns[columns - 1](d, tile);
        }
      } else {
        const float** to = table;
        for (int64_t r = 0; r < tile.rows; ++r) {
          const float* row = line + r * tile.row_step;
          for (int64_t k = 0; k < d.kernel_w; ++k) {
            int64_t c = left + k * d.dilation_w;
            for (int64_t t = 0; t < columns; ++t, c += d.stride_w) {
              *to++ = c >= 0 && c < d.in_w ? row + c * n : d.zeros;
            }
          }
        }
        tiles.of_columns[columns - 1](d, tile);
      }
      // While the results are in the nearest cache.
      if (d.act != nullptr) d.act(tile.y, tile.y, columns * n, d.alpha);
    }
  }
}

}  // namespace

void FillDepthwise(ConvLoops& t) { t.depthwise = Depthwise; }

}  // namespace smelt::SMELT_ISA_NAMESPACE
