// Depthwise convolution of floats, stored as such or as bfloat16, whose channels lie innermost.
//
// Neighboring results share most of their pixels: a tile of columns loads each pixel and each
// weight of a row of the window once, and keeps its sums in registers. Where a window leaves the
// image a tile reads zeros, by a table of where each of its pixels lies.
#include <cstdint>

#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/isa/vector.inc"
#include "smelt/kernels/isa/vector_narrow.inc"

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

// A tile of the result, all channels. E: what x and y are stored as.
template <typename E>
struct DepthwiseTile {
  const E* const* pixels;  // [rows, columns that are read]; nullptr: from x on
  const E* x;
  int64_t row_step;  // from x of a row to that of the next
  int64_t rows;      // of the window
  const float* weights;
  E* y;
};

// A piece of the channels: a vector of floats, or two of bfloat16, those of even and of odd
// numbers, which are widened and put together again without moving between lanes.
template <typename E>
constexpr int kHalves = sizeof(E) == sizeof(float) ? 1 : 2;
template <typename E>
constexpr int64_t kPiece = kHalves<E>* kLanes;

inline __attribute__((always_inline)) void LoadPiece(const float* p, Vec* v) { v[0] = LoadVec(p); }
inline __attribute__((always_inline)) void LoadPiece(const uint16_t* p, Vec* v) {
  const WordVec both = LoadWords(p);
  v[0] = reinterpret_cast<Vec>(both << 16);
  v[1] = reinterpret_cast<Vec>(both & 0xffff0000u);
}
inline __attribute__((always_inline)) void StorePiece(float* p, const Vec* v) { StoreVec(p, v[0]); }
inline __attribute__((always_inline)) void StorePiece(uint16_t* p, const Vec* v) {
  StoreWords(p, (RoundedWords(v[0]) >> 16) | (RoundedWords(v[1]) & 0xffff0000u));
}

// Where the pieces of a tile's channels lie. A piece that would leave the row begins earlier, and a
// few results are computed twice.
template <typename E>
struct PieceAt {
  PieceAt(const DepthwiseLoop& d, const DepthwiseTile<E>& tile, int64_t at)
      : c(at + kPiece<E> <= d.channels ? at : d.channels - kPiece<E>),
        bias(d.bias + (kHalves<E> == 1 ? c : at)),
        weights(tile.weights + (kHalves<E> == 1 ? c : at * d.kernel_h * d.kernel_w)),
        step(kHalves<E> == 1 ? d.channels : kPiece<E>) {}

  const int64_t c;
  const float* const bias;
  const float* const weights;
  const int64_t step;  // from tap to tap
};

template <int T, typename E>
inline __attribute__((always_inline)) void StoreTile(const DepthwiseLoop& d, Vec (*sum)[kHalves<E>],
                                                     E* y, int64_t n) {
  constexpr int H = kHalves<E>;
  if (d.clamps) {
    const Vec low = SplatVec(d.low), high = SplatVec(d.high);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) {
        // NaN stays: a comparison with it is false.
        sum[t][h] = low > sum[t][h] ? low : sum[t][h];
        sum[t][h] = high < sum[t][h] ? high : sum[t][h];
      }
    }
  }
  // What is rounded is rounded once.
  if (H > 1 && d.act != nullptr) {
    float all[T * H * kLanes];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) StoreVec(all + (t * H + h) * kLanes, sum[t][h]);
    }
    d.act(all, all, T * H * kLanes, d.alpha);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) sum[t][h] = LoadVec(all + (t * H + h) * kLanes);
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) StorePiece(y + t * n, sum[t]);
}

// T columns with windows of KW columns, S apart. `kDirect`: all pixels are inside of the image.
template <typename E, int KW, int S, int T, bool kDirect>
void TileOf(const DepthwiseLoop& d, const DepthwiseTile<E>& tile) {
  constexpr int H = kHalves<E>;
  const int64_t n = d.channels;
  constexpr int kPixels = (T - 1) * S + KW;
  for (int64_t at = 0; at < n; at += kPiece<E>) {
    const PieceAt<E> piece(d, tile, at);
    const int64_t c = piece.c, step = piece.step;
    Vec sum[T][H];
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) {
      const Vec bias = LoadVec(piece.bias + h * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sum[t][h] = bias;
    }
    const E* const* pixels = tile.pixels;
    const E* row = tile.x + c;
    const float* w = piece.weights;
    for (int64_t r = 0; r < tile.rows; ++r) {
      Vec weight[KW][H];
#pragma GCC unroll 8
      for (int k = 0; k < KW; ++k) {
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) weight[k][h] = LoadVec(w + k * step + h * kLanes);
      }
#pragma GCC unroll 32
      for (int i = 0; i < kPixels; ++i) {
        Vec pixel[H];
        LoadPiece(kDirect ? row + i * n : pixels[i] + c, pixel);
#pragma GCC unroll 8
        for (int k = 0; k < KW; ++k) {
          const int from = i - k;
          if (from >= 0 && from % S == 0 && from / S < T) {
#pragma GCC unroll 2
            for (int h = 0; h < H; ++h) sum[from / S][h] += pixel[h] * weight[k][h];
          }
        }
      }
      if (kDirect) {
        row += tile.row_step;
      } else {
        pixels += kPixels;
      }
      w += KW * step;
    }
    StoreTile<T>(d, sum, tile.y + c, n);
  }
}

// T columns of any window. The table has the T pixels of each tap.
template <typename E, int T>
void AnyTileOf(const DepthwiseLoop& d, const DepthwiseTile<E>& tile) {
  constexpr int H = kHalves<E>;
  const int64_t n = d.channels, taps = tile.rows * d.kernel_w;
  for (int64_t at = 0; at < n; at += kPiece<E>) {
    const PieceAt<E> piece(d, tile, at);
    Vec sum[T][H];
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) {
      const Vec bias = LoadVec(piece.bias + h * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sum[t][h] = bias;
    }
    const E* const* pixels = tile.pixels;
    const float* w = piece.weights;
    for (int64_t k = 0; k < taps; ++k, pixels += T, w += piece.step) {
      Vec weight[H];
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) weight[h] = LoadVec(w + h * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        Vec pixel[H];
        LoadPiece(pixels[t] + piece.c, pixel);
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) sum[t][h] += pixel[h] * weight[h];
      }
    }
    StoreTile<T>(d, sum, tile.y + piece.c, n);
  }
}

template <typename E>
using DepthwiseTileFn = void (*)(const DepthwiseLoop& d, const DepthwiseTile<E>& tile);
template <typename E>
struct DepthwiseTiles {
  DepthwiseTileFn<E> of_columns[kDepthwiseTile];  // by columns - 1
  DepthwiseTileFn<E> direct;                      // of kDepthwiseTile columns; nullptr: none
};

template <typename E, int KW, int S>
constexpr DepthwiseTiles<E> kTilesOf = {
    {TileOf<E, KW, S, 1, false>, TileOf<E, KW, S, 2, false>, TileOf<E, KW, S, 3, false>,
     TileOf<E, KW, S, 4, false>, TileOf<E, KW, S, 5, false>, TileOf<E, KW, S, 6, false>,
     TileOf<E, KW, S, 7, false>, TileOf<E, KW, S, 8, false>},
    TileOf<E, KW, S, kDepthwiseTile, true>};
template <typename E>
constexpr DepthwiseTiles<E> kTilesOfAny = {
    {AnyTileOf<E, 1>, AnyTileOf<E, 2>, AnyTileOf<E, 3>, AnyTileOf<E, 4>, AnyTileOf<E, 5>,
     AnyTileOf<E, 6>, AnyTileOf<E, 7>, AnyTileOf<E, 8>},
    nullptr};

template <typename E>
const DepthwiseTiles<E>& ChooseTiles(const DepthwiseLoop& d) {
  if (d.dilation_w == 1 && d.kernel_h <= kMostRows) {
    if (d.kernel_w == 3 && d.stride_w == 1) return kTilesOf<E, 3, 1>;
    if (d.kernel_w == 3 && d.stride_w == 2) return kTilesOf<E, 3, 2>;
    if (d.kernel_w == 5 && d.stride_w == 1) return kTilesOf<E, 5, 1>;
    if (d.kernel_w == 5 && d.stride_w == 2) return kTilesOf<E, 5, 2>;
  }
  return kTilesOfAny<E>;
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

template <typename E>
void Depthwise(const DepthwiseLoop& d, const E* x, E* y, int64_t first, int64_t last) {
  const int64_t n = d.channels;
  const DepthwiseTiles<E>& tiles = ChooseTiles<E>(d);
  const auto* zeros = static_cast<const E*>(d.zeros);
  const bool any = tiles.direct == nullptr;
  const int64_t parts = (d.out_w + kDepthwiseTile - 1) / kDepthwiseTile;
  const E* table[kMostDepthwiseTaps * kDepthwiseTile];
  for (int64_t i = first; i < last; ++i) {
    const int64_t image = i / d.out_h;
    const int64_t top = i % d.out_h * d.stride_h - d.pad_top;
    int64_t begin, end;
    Inside(top, d.in_h, d.kernel_h, d.dilation_h, &begin, &end);
    DepthwiseTile<E> tile;
    tile.rows = end - begin;
    tile.row_step = d.dilation_h * d.in_w * n;
    tile.weights = d.weights + begin * d.kernel_w * (kHalves<E> == 1 ? n : kPiece<E>);
    const E* line =
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
          const E** to = table;
          for (int64_t r = 0; r < tile.rows; ++r) {
            const E* row = line + r * tile.row_step;
            for (int64_t c = left; c < left + pixels; ++c) {
              *to++ = c >= 0 && c < d.in_w ? row + c * n : zeros;
            }
          }
          tiles.of_columns[columns - 1](d, tile);
        }
      } else {
        const E** to = table;
        for (int64_t r = 0; r < tile.rows; ++r) {
          const E* row = line + r * tile.row_step;
          for (int64_t k = 0; k < d.kernel_w; ++k) {
            int64_t c = left + k * d.dilation_w;
            for (int64_t t = 0; t < columns; ++t, c += d.stride_w) {
              *to++ = c >= 0 && c < d.in_w ? row + c * n : zeros;
            }
          }
        }
        tiles.of_columns[columns - 1](d, tile);
      }
      // While the results are in the nearest cache.
      if constexpr (sizeof(E) == sizeof(float)) {
        if (d.act != nullptr) d.act(tile.y, tile.y, columns * n, d.alpha);
      }
    }
  }
}

}  // namespace

void FillDepthwise(ConvLoops& t) {
  t.depthwise = Depthwise<float>;
  t.narrow_depthwise = Depthwise<uint16_t>;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
