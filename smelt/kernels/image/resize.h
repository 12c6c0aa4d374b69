// Which pixels of an image a resized pixel takes, and how much of each: for resizing and its
// gradients. Thread safe.
#ifndef SMELT_KERNELS_IMAGE_RESIZE_H_
#define SMELT_KERNELS_IMAGE_RESIZE_H_

#include <cstdint>
#include <vector>

#include "smelt/kernels/common/binds_by_function.h"

namespace smelt::image {

// The attributes of the resizing ops and their gradients; a prepare function.
struct ResizeState final : BindsByFunction<ResizeState> {
  bool align_corners = false;
  bool half_pixel_centers = false;
};
StatusOr<std::unique_ptr<KernelState>> ReadResizeState(const Node& node);

struct ResizeProblem {
  int64_t batch, in_h, in_w, depth, out_h, out_w;
  float scale_h, scale_w;
  Shape output;
};
// Images [batch, height, width, depth] to be of `size` {height, width}; INVALID_ARGUMENT for other
// shapes and sizes that are not positive.
StatusOr<ResizeProblem> MakeResizeProblem(const Shape& in, const Tensor& size, bool align_corners);

// Input pixels per output pixel.
float ResizeScale(int64_t in, int64_t out, bool align_corners);

// The pixels on either side of where an output pixel falls, and how far it is towards the second.
struct Neighbors {
  int64_t low, high;
  float weight;
};
// These three: one entry for each of `out` pixels of a line, over a line of `in` pixels. `scale` is
// ResizeScale's; `half_pixel` is the op's half_pixel_centers.
std::vector<Neighbors> LinearNeighbors(int64_t out, int64_t in, float scale, bool half_pixel);

// The four pixels of a cubic kernel: Keys' (a = -0.5) with half_pixel, a = -0.75 without. Indices
// lie in the image.
struct CubicTaps {
  int64_t index[4];
  float weight[4];
};
std::vector<CubicTaps> MakeCubicTaps(int64_t out, int64_t in, float scale, bool half_pixel);

std::vector<int64_t> NearestPixels(int64_t out, int64_t in, float scale, bool align_corners,
                                   bool half_pixel);

}  // namespace smelt::image

#endif  // SMELT_KERNELS_IMAGE_RESIZE_H_
