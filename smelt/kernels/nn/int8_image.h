// An int8 layer's input as its loops read it (isa/exact_int8.h): an image with the padding around
// it, in which each window is a few runs of numbers where they lie; and weights, laid out for them.
#ifndef SMELT_KERNELS_NN_INT8_IMAGE_H_
#define SMELT_KERNELS_NN_INT8_IMAGE_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/base/aligned_vector.h"
#include "smelt/kernels/nn/int8_window.h"

namespace smelt::nn {

// Loops read whole vectors, so behind the image there are as many bytes as one may read too far.
constexpr int64_t kBehindInt8Image = 64;

// Output lines [line, line + lines) of images [image, image + images): all lines of several images,
// or some of one.
struct Int8Band {
  int64_t image = 0, images = 1, line = 0, lines = 1;
};

// Immutable once made, so thread safe.
struct Int8Image {
  explicit Int8Image(const Int8Window& window);

  // Of the image, that so many output lines read.
  int64_t LinesOf(int64_t out_lines) const {
    return (out_lines - 1) * stride_h + (w.kernel_h - 1) * w.dilation_h + 1;
  }
  // Numbers of a band's image.
  int64_t SizeOf(const Int8Band& band) const {
    return band.images * LinesOf(band.lines) * width * depth;
  }
  // Where the window of an output of a band of so many lines begins.
  int64_t WindowAt(int64_t output, int64_t lines) const {
    // Divisions take as long as a row of few numbers.
    if (w.out_w == 1 && lines == 1) return output * LinesOf(1) * width * depth;
    const int64_t x = output % w.out_w, line = output / w.out_w;
    const int64_t y = line % lines, b = line / lines;
    return ((b * LinesOf(lines) + y * stride_h) * width + x * stride_w) * depth;
  }

  // Pixels of the image that are the input's: `from` and `to` are numbers, of the input and of the
  // band's image; each pixel's lie from_step and to_step behind the one's before.
  struct Pixels {
    int64_t from, to, count, from_step, to_step;
    int64_t image;  // of the input
    int64_t first;  // pixel of the input's image, where from_step is a pixel's numbers
  };
  // Numbers [to, to + count) of the band's image, that stand for 0.
  struct Zeros {
    int64_t to, count, image;
  };
  // Says all that makes a band's image, by the calling thread's team.
  void Fill(const Int8Band& band, absl::FunctionRef<void(const Pixels&)> pixels,
            absl::FunctionRef<void(const Zeros&)> zeros) const;

  const Int8Window w;
  int64_t multiplier = 1;        // as often does the image have each channel
  int64_t width = 0, depth = 0;  // pixels of a line, numbers of a pixel
  // Every skip_h-th line and skip_w-th pixel of the input is in the image: windows of one pixel
  // with a stride need no others.
  int64_t skip_h = 1, skip_w = 1, stride_h = 1, stride_w = 1;
  bool lines = false;             // is a line of a window one segment?
  std::vector<int64_t> segments;  // from a window's begin; of depthwise layers taps, two and two
};

// Weights of a layer that is not depthwise: panel by panel, segment by segment, `group` numbers of
// each unit side by side, zeros where there are none.
struct Int8Panels {
  // Of the calling thread's loops, or where `bytes` those of bytes; groups of a segment are padded
  // to a multiple of `groups_of`.
  Int8Panels(const Int8Image& image, bool bytes, int64_t groups_of);

  // weights: [segments, length, units], or where `transposed` [units, segments, length]; `to` has
  // size() zeros.
  void Pack(const int8_t* weights, bool transposed, int8_t* to) const;
  // Where a unit's numbers stand among those of all panels.
  int64_t PlaceOf(int64_t unit) const {
    return unit / per_group * panels * panel + unit % per_group;
  }
  int64_t size() const { return num_panels() * of_panel; }
  int64_t num_panels() const { return unit_groups * panels; }

  int64_t panel, group;
  int64_t unit_groups, per_group;        // units
  int64_t num_segments, length, groups;  // numbers, or `group`s of them, of a segment
  int64_t panels;                        // of a group of units
  int64_t of_panel;                      // weights
};

// Where a channel of a depthwise layer stands: in blocks whose order is the loop's.
int64_t DepthwisePlaceOf(int64_t unit);
// Room for so many, in whole blocks.
int64_t DepthwisePlaces(int64_t units);
// weights: [kernel_h, kernel_w, units]; [blocks, pairs of taps, block, 2].
AlignedVector<int16_t> PackDepthwiseInt8(const Int8Window& w, const int8_t* weights);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_INT8_IMAGE_H_
