#include "smelt/kernels/nn/matrix_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/kept_form.h"
#include "smelt/kernels/common/read_once.h"
#include "smelt/kernels/nn/narrow_panels.h"

namespace smelt::nn {
namespace {

// Rows that meet a panel of weights one after another, and whose places are known at a time.
constexpr int64_t kMostRowsOfPart = 1024;
constexpr int64_t kFewestRows = 16;
constexpr int64_t kRowsOfBlock = 32;  // that are multiplied at a time, but for the last ones
constexpr int64_t kLargestMatrixStep = 1 << 15;  // so that products of sizes do not overflow
// Panels that are multiplied by the same rows one after another.
constexpr int64_t kBytesOfPanels = 24 << 10;
// Multiplications that are worth a thread.
constexpr int64_t kMatrixWorkOfThread = 1 << 20;

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
int64_t RatioUp(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Bytes of rows, or of weights, that stay in a core's cache beside what else passes it.
int64_t RowsNear() { return NearCacheBytes(1 << 20) / 4; }

}  // namespace

MatrixRows::MatrixRows(const Int8Window& window, int64_t element, bool alone)
    : image_(window),
      element_(element),
      alone_(alone),
      panels_(RatioUp(window.units, kMatrixColumns)) {
  const Int8Window& w = image_.w;
  const int64_t rows = w.outputs(), depth_bytes = w.depth * element;
  const bool one_pixel = w.kernel_h == 1 && w.kernel_w == 1 && w.top == 0 && w.left == 0;
  const bool whole = one_pixel && w.out_w == w.in_w && w.out_h == w.in_h;
  length_ = image_.lines ? w.kernel_w * w.depth : w.depth;
  const int64_t bytes = length_ * element, padded = RoundUp(bytes, kMatrixStepBytes);
  if (whole && bytes < kMatrixStepBytes && bytes % 4 == 0) step_bytes_ = bytes;
  const bool exact = bytes % step_bytes_ == 0;
  const bool fits = alone ? exact : 4 * padded <= 5 * bytes || one_pixel;
  const bool flat = image_.stride_h == 1 && image_.stride_w == 1;
  if (fits && flat) {
    kind_ = whole ? Kind::kInPlace : Kind::kImage;
  } else {
    // A copy of each window costs more than some steps that multiply zeros.
    const int64_t steps = std::ssize(image_.segments) * padded;
    const int64_t fewest = RoundUp(w.kernel_h * w.kernel_w * depth_bytes, kMatrixStepBytes);
    const bool fills = 4 * w.out_w >= 3 * RoundUp(w.out_w, kRowsOfBlock / 2);
    const bool lines = (alone ? exact : steps <= 3 * fewest) && fills;
    kind_ = lines ? Kind::kLines : Kind::kCopied;
  }
  if (kind_ == Kind::kCopied) {
    step_bytes_ = kMatrixStepBytes;
    length_ = w.kernel_h * w.kernel_w * w.depth;
    segments_ = {0};
  } else {
    for (const int64_t s : image_.segments) segments_.push_back(s * element);
  }
  steps_ = RatioUp(length_ * element, kMatrixStepBytes);
  row_step_ = steps_ * kMatrixStepBytes;
  // Rows that lie a multiple of pages apart meet in few lines of a cache.
  if (row_step_ % 512 == 0) row_step_ += kMatrixStepBytes;

  panels_at_once_ = std::max<int64_t>(1, kBytesOfPanels / bytes_of_panel());

  // Rows meet all panels: as many bytes of them as of weights, of which those that are copied stay
  // in the nearest cache where they can.
  const int64_t read = kind_ == Kind::kCopied ? row_step_ : depth_bytes;
  const int64_t near = RowsNear();
  const int64_t part =
      kind_ == Kind::kCopied ? std::clamp(panels_ * bytes_of_panel(), kBytesOfPanels, near) : near;
  rows_of_part_ =
      std::clamp<int64_t>(part / read, kRowsOfBlock, kMostRowsOfPart) / kRowsOfBlock * kRowsOfBlock;
  if (kind_ == Kind::kInPlace) {
    if (rows <= kMatrixRows) {
      tail_ = exact && rows % kMatrixSide == 0 ? 0 : rows;
    } else if (!exact) {
      // What is read behind rows and their numbers is other rows, which are there.
      tail_ = kMatrixSide + RatioUp(kMatrixStepBytes, bytes);
      if (rows - tail_ <= kMatrixRows) tail_ = rows;
    }
  } else if (kind_ != Kind::kCopied) {
    const int64_t of_line = image_.width * depth_bytes, wanted = near * Threads();
    const int64_t of_image = image_.LinesOf(w.out_h) * of_line;
    band_lines_ = w.out_h;
    if (of_image <= wanted) {
      band_images_ = std::min(w.batch, wanted / of_image);
      band_images_ = RatioUp(w.batch, RatioUp(w.batch, band_images_));
    } else {
      // Lines that two bands read are copied twice.
      const int64_t twice = image_.LinesOf(1) - 1;
      const int64_t lines = std::max(wanted / of_line - twice, std::max<int64_t>(1, 4 * twice));
      band_lines_ = RatioUp(w.out_h, RatioUp(w.out_h, std::min(lines, w.out_h)));
    }
  } else {
    const int64_t wanted = Threads() == 1 ? 1 : 4 * int64_t{Threads()};
    rows_of_part_ =
        std::clamp(RoundUp(RatioUp(rows, wanted), kRowsOfBlock), kRowsOfBlock, rows_of_part_);
    parts_ = RatioUp(rows, rows_of_part_);
    const int64_t work = rows * length_ * w.units;
    slots_ =
        std::min<int64_t>({Threads(), parts_, std::max<int64_t>(1, work / kMatrixWorkOfThread)});
  }
}

bool MatrixRows::Suits(const Int8Window& w) {
  if (w.groups > 1 || w.depthwise || w.outputs() < kFewestRows) return false;
  for (const int64_t n : {w.stride_h, w.stride_w, w.dilation_h, w.dilation_w, w.top, w.left,
                          w.kernel_h, w.kernel_w}) {
    if (n > kLargestMatrixStep) return false;
  }
  return true;
}

bool MatrixRows::CopiesShortLines(const Int8Window& w, int64_t element) {
  constexpr int64_t kFewLines = 3;
  return w.kernel_w * w.depth * element < kMatrixStepBytes && w.kernel_h > kFewLines;
}

// Numbers [first, first + 4 bytes of them) of `columns` columns, those of each side by side.
template <typename T>
void MatrixRows::PackGroup(const T* weights, bool transposed, int64_t first, int64_t numbers,
                           int64_t column, int64_t columns, uint32_t* to) const {
  constexpr int64_t kOfGroup = 4 / sizeof(T);
  const int64_t units = image_.w.units, all = std::ssize(segments_) * length_;
  if (transposed) {
    for (int64_t c = 0; c < columns; ++c) {
      std::memcpy(to + c, weights + (column + c) * all + first,
                  static_cast<size_t>(numbers) * sizeof(T));
    }
    return;
  }
  const T* from = weights + first * units + column;
  if (numbers == kOfGroup) {
    for (int64_t c = 0; c < columns; ++c) {
      uint32_t bits = 0;
      for (int64_t i = 0; i < kOfGroup; ++i) {
        bits |= uint32_t{from[i * units + c]} << (i * 8 * sizeof(T));
      }
      to[c] = bits;
    }
    return;
  }
  for (int64_t i = 0; i < numbers; ++i) {
    for (int64_t c = 0; c < columns; ++c) {
      to[c] |= uint32_t{from[i * units + c]} << (i * 8 * static_cast<int64_t>(sizeof(T)));
    }
  }
}

template <typename T>
void MatrixRows::PackAs(const T* weights, bool transposed, char* to) const {
  constexpr int64_t kOfGroup = 4 / sizeof(T);
  const int64_t bytes = bytes_of_panel() / 2;
  ParallelFor(2 * panels_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t column = p * kMatrixSide;
      const int64_t columns = std::clamp<int64_t>(image_.w.units - column, 0, kMatrixSide);
      char* segment = to + p * bytes;
      std::memset(segment, 0, static_cast<size_t>(bytes));
      for (int64_t s = 0; s < std::ssize(segments_); ++s, segment += steps_ * kMatrixStepWeights) {
        auto* groups = reinterpret_cast<uint32_t*>(segment);
        for (int64_t k = 0; k < length_; k += kOfGroup, groups += kMatrixSide) {
          PackGroup(weights, transposed, s * length_ + k, std::min(kOfGroup, length_ - k), column,
                    columns, groups);
        }
      }
    }
  });
}

StatusOr<Tensor> MatrixRows::Packed(const Tensor& weights, bool transposed,
                                    std::span<const float> factors, Allocator* allocator) const {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{panels_ * bytes_of_panel()}));
  const auto fill = [&](Tensor& packed) -> Status {
    auto* const to = static_cast<char*>(packed.raw());
    if (element_ == 1) {
      PackAs(static_cast<const uint8_t*>(weights.raw()), transposed, to);
    } else {
      ASSIGN_OR_RETURN(const Tensor scaled, ScaledColumns(weights, factors));
      PackAs(static_cast<const uint16_t*>(scaled.raw()), transposed, to);
    }
    DropOriginal(weights);
    return OkStatus();
  };
  return KeptOrMade(weights,
                    absl::StrCat("matrix ", std::ssize(segments_), " ", length_, " ",
                                 image_.w.units, transposed ? " turned" : ""),
                    factors, Dtype::kInt8, shape, allocator, fill);
}

size_t MatrixRows::scratch_bytes() const {
  int64_t bytes = 0;
  switch (kind_) {
    case Kind::kInPlace:
      bytes = RoundUp(tail_, kRowsOfBlock) * row_step_;
      break;
    case Kind::kImage:
    case Kind::kLines:
      // Blocks of rows read whole ones beyond the last.
      bytes = (image_.SizeOf({.images = band_images_, .lines = band_lines_}) +
               kRowsOfBlock * image_.stride_w * image_.depth) *
                  element_ +
              kMatrixStepBytes;
      break;
    case Kind::kCopied:
      bytes = slots_ * rows_of_part_ * row_step_;
      break;
  }
  return static_cast<size_t>(bytes);
}

MatrixRun MatrixRows::RunOf(const char* x, int64_t step) const {
  MatrixRun run;
  run.x = x;
  run.x_step = step;
  run.segments = segments_.data();
  run.num_segments = std::ssize(segments_);
  run.steps = steps_;
  return run;
}

template <typename F>
void MatrixRows::ForTasks(int64_t images, int64_t rows_of_image, int64_t row_bytes, F&& run) const {
  const int64_t wanted = Threads() == 1 ? 1 : 4 * int64_t{Threads()};
  int64_t rows = std::min(rows_of_part_, RoundUp(rows_of_image, kRowsOfBlock));
  if (images * RatioUp(rows_of_image, rows) < wanted) {
    rows = std::max(RoundUp(rows_of_image * images / wanted, kRowsOfBlock), 4 * kRowsOfBlock);
    rows = std::min(rows, rows_of_part_);
  }
  // Rows that are too few for a part of their own go with the one before.
  const int64_t row_parts = std::max<int64_t>(1, RatioUp(rows_of_image - kMatrixRows, rows));
  const int64_t row_tasks = images * row_parts;
  int64_t panel_parts = std::clamp<int64_t>(RatioUp(wanted, row_tasks), 1, panels_);
  // What does not stay in the near cache is read again for each part of the other.
  const int64_t near = RowsNear(), weights = panels_ * bytes_of_panel();
  const int64_t all_rows = images * rows_of_image * row_bytes;
  const int64_t chunks = std::clamp(RatioUp(weights, near), panel_parts, panels_);
  const bool panels_first = weights + all_rows * (all_rows <= 2 * near ? 1 : chunks) <
                            all_rows + weights * (weights <= near ? 1 : row_tasks);
  if (panels_first) panel_parts = chunks;
  // Weights that nobody has read for a while are asked for while those before them are multiplied:
  // by the first part of the rows or, where panels come first, by all parts for the next panels
  // that these are multiplied by.
  PanelRange range;
  range.ahead = panels_at_once_;
  if (panels_first && row_tasks > 1) {
    range.ahead = RatioUp(panels_, panel_parts);
    range.shares = row_tasks;
  }
  const int64_t tasks = row_tasks * panel_parts;
  const int64_t work = images * rows_of_image * length_ * std::ssize(segments_) * image_.w.units;
  SharedParallelFor(tasks, std::max<int64_t>(1, kMatrixWorkOfThread / (work / tasks + 1)),
                    [&](int64_t begin, int64_t end) {
                      IsaMatrixTiles().begin(step_bytes_);
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t part = panels_first ? i % row_tasks : i / panel_parts;
                        const int64_t p = panels_first ? i / row_tasks : i % panel_parts;
                        const int64_t in_image = part % row_parts, from = in_image * rows;
                        const int64_t to = in_image + 1 == row_parts ? rows_of_image : from + rows;
                        PanelRange panels = range;
                        panels.first = p * panels_ / panel_parts;
                        panels.last = (p + 1) * panels_ / panel_parts;
                        if (panels.shares > 1) {
                          panels.share = part;
                        } else if (part > 0) {
                          panels.ahead = 0;
                        }
                        run(Task{part / row_parts, from, to, panels});
                      }
                      IsaMatrixTiles().end();
                    });
}

void MatrixRows::RunInPlace(const char* x, char* scratch, RunFn run) const {
  const int64_t rows = image_.w.outputs(), units = image_.w.units;
  const int64_t step = image_.w.depth * element_, whole = rows - tail_;
  for (int64_t r = 0; r < tail_; ++r) {
    std::memcpy(scratch + r * row_step_, x + (whole + r) * step, static_cast<size_t>(step));
  }
  ForTasks(1, rows, step, [&](const Task& t) {
    std::array<int64_t, kMostRowsOfPart + kMatrixRows> places;
    for (int64_t r = t.from; r < t.to; ++r) places[static_cast<size_t>(r - t.from)] = r * units;
    const int64_t end = std::min(t.to, whole);
    if (end > t.from) {
      MatrixRun in_place = RunOf(x + t.from * step, step);
      in_place.rows = end - t.from;
      in_place.places = places.data();
      run(in_place, t.panels);
    }
    if (t.to > whole) {
      const int64_t first = std::max(t.from, whole);
      MatrixRun copied = RunOf(scratch + (first - whole) * row_step_, row_step_);
      copied.rows = t.to - first;
      copied.places = places.data() + (first - t.from);
      run(copied, t.panels);
    }
  });
}

void MatrixRows::RunImage(const char* x, uint8_t zero, char* scratch, RunFn run) const {
  const Int8Window& w = image_.w;
  const int64_t pixel = image_.depth * element_;
  for (int64_t b = 0; b < w.batch; b += band_images_) {
    for (int64_t line = 0; line < w.out_h; line += band_lines_) {
      const Int8Band band{b, std::min(band_images_, w.batch - b), line,
                          std::min(band_lines_, w.out_h - line)};
      image_.Fill(
          band,
          [&](const Int8Image::Pixels& p) {
            const int64_t at_once = p.from_step == w.depth ? p.count : 1;
            for (int64_t i = 0; i < p.count; i += at_once) {
              std::memcpy(scratch + (p.to + i * p.to_step) * element_,
                          x + (p.from + i * p.from_step) * element_,
                          static_cast<size_t>(at_once * pixel));
            }
          },
          [&](const Int8Image::Zeros& z) {
            std::memset(scratch + z.to * element_, zero, static_cast<size_t>(z.count * element_));
          });
      kind_ == Kind::kLines ? RunLines(band, scratch, run) : RunFlat(band, scratch, run);
    }
  }
}

// All pixels of an image one after another, of which those behind a line's last window are for
// nothing.
void MatrixRows::RunFlat(const Int8Band& band, const char* image, RunFn run) const {
  const Int8Window& w = image_.w;
  const int64_t pixel = image_.depth * element_;
  const int64_t of_image = image_.LinesOf(band.lines) * image_.width * pixel;
  ForTasks(band.images, (band.lines - 1) * image_.width + w.out_w, pixel, [&](const Task& t) {
    std::array<int64_t, kMostRowsOfPart + kMatrixRows> places;
    int64_t y = t.from / image_.width, column = t.from % image_.width;
    for (int64_t r = 0; r < t.to - t.from; ++r) {
      const int64_t at = ((band.image + t.image) * w.out_h + band.line + y) * w.out_w + column;
      places[static_cast<size_t>(r)] = column < w.out_w ? at * w.units : -1;
      if (++column < image_.width) continue;
      column = 0;
      ++y;
    }
    MatrixRun of_part = RunOf(image + t.image * of_image + t.from * pixel, pixel);
    of_part.rows = t.to - t.from;
    of_part.places = places.data();
    run(of_part, t.panels);
  });
}

// The windows of each line by themselves.
void MatrixRows::RunLines(const Int8Band& band, const char* image, RunFn run) const {
  const Int8Window& w = image_.w;
  const int64_t step = image_.stride_w * image_.depth * element_;
  ForTasks(band.images * band.lines, w.out_w, step, [&](const Task& t) {
    std::array<int64_t, kMostRowsOfPart + kMatrixRows> places;
    const int64_t line = (band.image * w.out_h + band.line + t.image) * w.out_w;
    for (int64_t r = t.from; r < t.to; ++r) {
      places[static_cast<size_t>(r - t.from)] = (line + r) * w.units;
    }
    const int64_t window = image_.WindowAt(t.image * w.out_w, band.lines) * element_;
    MatrixRun of_line = RunOf(image + window + t.from * step, step);
    of_line.rows = t.to - t.from;
    of_line.places = places.data();
    run(of_line, t.panels);
  });
}

void MatrixRows::CopyBorder(const char* image, uint8_t zero, int64_t line, int64_t column,
                            char* row) const {
  const Int8Window& w = image_.w;
  const auto pixel = static_cast<size_t>(w.depth * element_);
  for (int64_t ky = 0; ky < w.kernel_h; ++ky) {
    const int64_t y = line * w.stride_h - w.top + ky * w.dilation_h;
    for (int64_t kx = 0; kx < w.kernel_w; ++kx, row += pixel) {
      const int64_t x = column * w.stride_w - w.left + kx * w.dilation_w;
      if (y >= 0 && y < w.in_h && x >= 0 && x < w.in_w) {
        std::memcpy(row, image + (y * w.in_w + x) * w.depth * element_, pixel);
      } else {
        std::memset(row, zero, pixel);
      }
    }
  }
}

void MatrixRows::CopyWindows(const char* x, uint8_t zero, int64_t from, int64_t to,
                             char* rows) const {
  const Int8Window& w = image_.w;
  const int64_t pixel = w.depth * element_, of_line = w.in_w * pixel;
  const int64_t used = length_ * element_;
  WindowLines copy;
  copy.from_window = w.stride_w * pixel;
  copy.to_window = row_step_;
  // Windows of neighboring pixels are a line of bytes each.
  const bool whole = w.dilation_w == 1;
  copy.lines = w.kernel_h;
  copy.from_line = w.dilation_h * of_line;
  copy.bytes = w.kernel_w * pixel;
  copy.zeros = alone_ ? steps_ * kMatrixStepBytes - used : 0;
  // Columns [first, last) lie within the image's lines.
  const int64_t reach = w.in_w + w.left - w.kernel_w;
  const int64_t first = std::min(w.out_w, RatioUp(w.left, w.stride_w));
  const int64_t last =
      whole && reach >= 0 ? std::clamp(reach / w.stride_w + 1, first, w.out_w) : first;
  for (int64_t r = from; r < to;) {
    const int64_t column = r % w.out_w, line = r / w.out_w % w.out_h;
    const char* image = x + r / w.out_w / w.out_h * w.in_h * of_line;
    const int64_t top = line * w.stride_h - w.top;
    const bool inside = top >= 0 && top + (w.kernel_h - 1) * w.dilation_h < w.in_h;
    copy.to = rows + (r - from) * row_step_;
    if (inside && column >= first && column < last) {
      copy.from = image + top * of_line + (column * w.stride_w - w.left) * pixel;
      copy.windows = std::min(last - column, to - r);
      IsaMatrixTiles().copy_windows(copy);
      r += copy.windows;
      continue;
    }
    CopyBorder(image, zero, line, column, static_cast<char*>(copy.to));
    std::memset(static_cast<char*>(copy.to) + used, 0, static_cast<size_t>(copy.zeros));
    ++r;
  }
}

void MatrixRows::RunCopied(const char* x, uint8_t zero, char* scratch, RunFn run) const {
  const int64_t rows = image_.w.outputs(), units = image_.w.units;
  ParallelFor(slots_, 1, [&](int64_t begin, int64_t end) {
    IsaMatrixTiles().begin(step_bytes_);
    std::array<int64_t, kMostRowsOfPart + kMatrixRows> places;
    for (int64_t slot = begin; slot < end; ++slot) {
      char* copy = scratch + slot * rows_of_part_ * row_step_;
      for (int64_t part = parts_ * slot / slots_; part < parts_ * (slot + 1) / slots_; ++part) {
        const int64_t from = part * rows_of_part_, to = std::min(rows, from + rows_of_part_);
        CopyWindows(x, zero, from, to, copy);
        for (int64_t r = from; r < to; ++r) places[static_cast<size_t>(r - from)] = r * units;
        MatrixRun copied = RunOf(copy, row_step_);
        copied.rows = to - from;
        copied.places = places.data();
        run(copied, PanelRange{0, panels_});
      }
    }
    IsaMatrixTiles().end();
  });
}

void MatrixRows::Run(const void* x, uint8_t zero, void* scratch, RunFn run) const {
  const auto* from = static_cast<const char*>(x);
  auto* to = static_cast<char*>(scratch);
  switch (kind_) {
    case Kind::kInPlace:
      return RunInPlace(from, to, run);
    case Kind::kImage:
    case Kind::kLines:
      return RunImage(from, zero, to, run);
    case Kind::kCopied:
      return RunCopied(from, zero, to, run);
  }
}

}  // namespace smelt::nn
