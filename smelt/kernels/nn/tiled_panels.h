// Weights as the tiles of isa/conv.h read them.
#ifndef SMELT_KERNELS_NN_TILED_PANELS_H_
#define SMELT_KERNELS_NN_TILED_PANELS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "smelt/kernels/isa/conv.h"
#include "smelt/tensor/tensor.h"

namespace smelt::nn {

// Vectors of the widest panel that so many vectors of channels are cut into: where registers hold
// more pixels of two, panels are even rather than some of three, some of two.
inline int64_t WidestPanel(int64_t vectors) {
  const int* pixels = IsaConv().tile_pixels;
  return vectors % kConvTileVecs != 0 && pixels[1] > pixels[2] ? 2 : kConvTileVecs;
}

// How the channels of a result are cut into panels, as even as can be.
struct TiledPanels {
  explicit TiledPanels(int64_t channels)
      : lanes(IsaConv().lanes),
        vectors((channels + lanes - 1) / lanes),
        widest(WidestPanel(vectors)),
        count((vectors + widest - 1) / widest),
        pixels(IsaConv().tile_pixels[widest - 1]) {}
  // The vector that panel i begins with; that of panel `count` is the last one's end.
  int64_t First(int64_t i) const { return vectors * i / count; }

  int64_t lanes, vectors;
  int64_t widest;  // vectors of a panel, at most
  int64_t count;
  int64_t pixels;  // of a tile, at most
};

// [k, channels] in panels, each [k, its vectors], zeros behind the last channel. Those of channel c
// times factors[c] where there are factors. `turned`: they lie as [channels, k].
StatusOr<Tensor> PackTiled(const Tensor& weights, int64_t k, int64_t channels, bool turned,
                           std::span<const float> factors, Allocator* allocator);

// `bias` of the channels in whole vectors, zeros behind the last one; zeros for all where it is
// nullptr.
std::vector<float> PaddedBias(const float* bias, int64_t channels);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_TILED_PANELS_H_
