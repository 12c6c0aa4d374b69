#include "smelt/kernels/nn/int8_image.h"

#include <algorithm>

#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/exact_int8.h"

namespace smelt::nn {
namespace {

// Numbers that are worth a thread to write.
constexpr int64_t kFillingOfThread = 1 << 15;

int64_t WholeParts(int64_t n, int64_t size) { return (n + size - 1) / size; }

}  // namespace

Int8Image::Int8Image(const Int8Window& window) : w(window) {
  stride_h = w.stride_h;
  stride_w = w.stride_w;
  if (w.kernel_h == 1 && w.top == 0) std::swap(skip_h, stride_h);
  if (w.kernel_w == 1 && w.left == 0) std::swap(skip_w, stride_w);
  width = (w.out_w - 1) * stride_w + (w.kernel_w - 1) * w.dilation_w + 1;
  if (w.depthwise) multiplier = w.units / w.depth;
  depth = w.depth * multiplier;
  // Pixels that lie side by side are one segment.
  lines = !w.depthwise && w.groups == 1 && w.dilation_w == 1;
  for (int64_t y = 0; y < w.kernel_h; ++y) {
    for (int64_t x = 0; x < (lines ? 1 : w.kernel_w); ++x) {
      segments.push_back((y * w.dilation_h * width + x * w.dilation_w) * depth);
    }
  }
  if (w.depthwise && segments.size() % 2 != 0) segments.push_back(segments.back());
}

void Int8Image::Fill(const Int8Band& band, absl::FunctionRef<void(const Pixels&)> pixels,
                     absl::FunctionRef<void(const Zeros&)> zeros) const {
  const int64_t of_line = width * depth, image_lines = LinesOf(band.lines);
  // Pixels [first, last) of a line are the input's.
  const int64_t first = std::min(w.left, width);
  const int64_t last = std::min(width, w.left + WholeParts(w.in_w, skip_w));
  // The lines of an image as they lie in the input: their pixels are shared out.
  if (first == 0 && last == width && width == w.in_w && skip_h == 1 && w.top == 0 &&
      band.line * stride_h + image_lines <= w.in_h) {
    const int64_t of_image = image_lines * width;
    ParallelFor(band.images * of_image, std::max<int64_t>(1, kFillingOfThread / depth),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end;) {
                    const int64_t b = i / of_image, at = i % of_image;
                    const int64_t n = std::min(end - i, of_image - at), image = band.image + b;
                    const int64_t pixel = band.line * stride_h * w.in_w + at;
                    pixels({(image * w.in_h * w.in_w + pixel) * w.depth, i * depth, n, w.depth,
                            depth, image, pixel});
                    i += n;
                  }
                });
    return;
  }
  ParallelFor(band.images * image_lines, std::max<int64_t>(1, kFillingOfThread / of_line),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t to = i * of_line, image = band.image + i / image_lines;
                  const int64_t line = (band.line * stride_h + i % image_lines) * skip_h - w.top;
                  if (line < 0 || line >= w.in_h) {
                    zeros({to, of_line, image});
                    continue;
                  }
                  if (first > 0) zeros({to, first * depth, image});
                  if (last > first) {
                    pixels({(image * w.in_h + line) * w.in_w * w.depth, to + first * depth,
                            last - first, skip_w * w.depth, depth, image, line * w.in_w});
                  }
                  if (last < width) zeros({to + last * depth, (width - last) * depth, image});
                }
              });
}

Int8Panels::Int8Panels(const Int8Image& image, bool bytes, int64_t groups_of)
    : panel(IsaExactInt8().panel),
      group(bytes ? IsaExactInt8().byte_group : IsaExactInt8().group),
      unit_groups(image.w.groups),
      per_group(image.w.units / image.w.groups),
      num_segments(static_cast<int64_t>(image.segments.size())) {
  const int64_t channels = image.w.depth / image.w.groups;
  length = image.lines ? image.w.kernel_w * channels : channels;
  groups = WholeParts(WholeParts(length, group), groups_of) * groups_of;
  panels = WholeParts(per_group, panel);
  of_panel = num_segments * groups * panel * group;
}

void Int8Panels::Pack(const int8_t* weights, bool transposed, int8_t* to) const {
  const int64_t units = unit_groups * per_group, of_unit = num_segments * length;
  const int64_t of_segment = groups * panel * group;
  // In the order of what is read: units, or those of a panel side by side.
  if (transposed) {
    ParallelFor(units, std::max<int64_t>(1, kFillingOfThread / of_unit),
                [&](int64_t begin, int64_t end) {
                  for (int64_t u = begin; u < end; ++u) {
                    const int64_t in_group = u % per_group;
                    const int8_t* from = weights + u * of_unit;
                    int8_t* at = to + (u / per_group * panels + in_group / panel) * of_panel +
                                 in_group % panel * group;
                    for (int64_t s = 0; s < num_segments; ++s, from += length, at += of_segment) {
                      for (int64_t i = 0; i < length; ++i) {
                        at[i / group * panel * group + i % group] = from[i];
                      }
                    }
                  }
                });
    return;
  }
  ParallelFor(num_panels(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p % panels * panel, n = std::min(panel, per_group - first);
      const int8_t* from = weights + p / panels * per_group + first;
      int8_t* segment = to + p * of_panel;
      for (int64_t s = 0; s < num_segments; ++s, segment += of_segment) {
        for (int64_t i = 0; i < length; ++i, from += units) {
          int8_t* at = segment + i / group * panel * group + i % group;
          for (int64_t u = 0; u < n; ++u) at[u * group] = from[u];
        }
      }
    }
  });
}

int64_t DepthwisePlaceOf(int64_t unit) {
  const int64_t in_block = unit % kExactDepthwiseBlock;
  return unit - in_block + IsaExactInt8().depthwise_places[in_block];
}

int64_t DepthwisePlaces(int64_t units) {
  return WholeParts(units, kExactDepthwiseBlock) * kExactDepthwiseBlock;
}

AlignedVector<int16_t> PackDepthwiseInt8(const Int8Window& w, const int8_t* weights) {
  constexpr int64_t kBlock = kExactDepthwiseBlock;
  // A tap that is not there has weights of 0.
  const int64_t taps = w.kernel_h * w.kernel_w, pairs = WholeParts(taps, 2);
  AlignedVector<int16_t> wide(static_cast<size_t>(DepthwisePlaces(w.units) * pairs * 2));
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t c = 0; c < w.units; ++c) {
      const int64_t block = c / kBlock * kBlock, in_block = DepthwisePlaceOf(c) - block;
      const int64_t at = block * pairs * 2 + t / 2 * kBlock * 2 + in_block * 2 + t % 2;
      wide[static_cast<size_t>(at)] = weights[t * w.units + c];
    }
  }
  return wide;
}

}  // namespace smelt::nn
