#include "smelt/kernels/nn/pairs_int8.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "smelt/base/parallel.h"
#include "smelt/kernels/nn/isa_activation.h"

namespace smelt::nn {
namespace {

using PairsStep = PairsInt8Steps::Step;

// Numbers of a band for each thread: with a panel of weights they stay in the second cache.
constexpr int64_t kNumbersOfBand = 128 << 10;
// Rows that a panel of weights is multiplied by before the next; and those that are finished
// together, a multiple of each tile's.
constexpr int64_t kRowsOfPart = 384, kRowsOfSums = 96, kMostPairsPanel = 32;
constexpr int64_t kPairsWorkOfThread = 1 << 17;  // multiplications that are worth a thread
constexpr int64_t kLargestPairsStep = 1 << 15;   // so that products of sizes do not overflow
constexpr int64_t kFewestUnitsOfGroup = 8;
// Lines of a depthwise layer whose block of channels is done before the next: each reads most of
// what the one before did.
constexpr int64_t kLinesOfBlock = 4;
// Rows from which on a panel of weights is widened once for all of them, and the most of it that
// is.
constexpr int64_t kRowsWorthWideWeights = 24, kMostWideWeights = 48 << 10;

int64_t PartsOf(int64_t n, int64_t size) { return (n + size - 1) / size; }

const void* OperandOf(const PairsStep& step, const void* const* inputs) {
  return step.constant != nullptr ? step.constant : inputs[step.input];
}

}  // namespace

const char* WhyNoPairsInt8(const Int8Window& w) {
  if (PairSumLoops() == nullptr || IsaExactInt8().group != 2) {
    return "the processor multiplies no pairs of 16 bits";
  }
  for (const int64_t n :
       {w.stride_h, w.stride_w, w.dilation_h, w.dilation_w, w.top, w.left, w.kernel_h}) {
    if (n > kLargestPairsStep) return "the window is too large";
  }
  const int64_t extent_w =
      (w.out_w - 1) * (w.kernel_w == 1 ? 1 : w.stride_w) + (w.kernel_w - 1) * w.dilation_w + 1;
  if (extent_w > 4 * w.in_w + 64) return "its image would be mostly padding";
  // A panel has 16 columns.
  if (w.groups > 1 && w.units / w.groups < kFewestUnitsOfGroup) {
    return "there are few units in a group";
  }
  return nullptr;
}

void PairsInt8Steps::Simplify() {
  if (!to_int8 || steps.empty()) return;
  const PairsStep& last = steps.back();
  if (last.kind != PairsStep::Kind::kActivation ||
      (last.act != UnaryF32::kRelu && last.act != UnaryF32::kRelu6) || !(factor > 0)) {
    return;
  }
  // What is not a number stays the least one.
  for (const PairsStep& s : steps) {
    if (s.kind != PairsStep::Kind::kAddInt8 && &s != &last) return;
  }
  numbers.low = std::max(numbers.low, std::min(numbers.zero, numbers.high));
  if (last.act == UnaryF32::kRelu6) {
    numbers.high = std::min(numbers.high, 6 * factor + numbers.zero);
  }
  steps.pop_back();
}

bool PairsInt8Steps::IsDirect() const {
  return to_int8 &&
         std::ranges::all_of(steps, [](const Step& s) { return s.kind == Step::Kind::kAddInt8; });
}

PairsInt8Weights::PairsInt8Weights(const Int8Window& w, const int8_t* weights, bool transposed) {
  if (w.depthwise) {
    wide_ = PackDepthwiseInt8(w, weights);
    return;
  }
  const Int8Panels panels(Int8Image(w), false, 1);
  tiles_.resize(static_cast<size_t>(panels.size()));
  panels.Pack(weights, transposed, tiles_.data());
}

PairsInt8::PairsInt8(std::shared_ptr<const PairsInt8Weights> weights, const Int8Window& window,
                     int32_t x_zero, PairsInt8Steps steps)
    : loops_(IsaExactInt8()),
      sum_loops_(*PairSumLoops()),
      weights_(std::move(weights)),
      image_(window),
      w_(window),
      panels_(image_, false, 1),
      x_zero_(x_zero),
      steps_(std::move(steps)) {
  steps_.Simplify();
  // Room for whole panels, or blocks.
  const int64_t padded =
      w_.depthwise ? DepthwisePlaces(w_.units) : panels_.num_panels() * panels_.panel;
  start_.resize(static_cast<size_t>(padded));
  scales_.resize(static_cast<size_t>(padded));
  factors_.assign(static_cast<size_t>(kMostPairsPanel), steps_.factor);
  direct_ = steps_.IsDirect();
  for (int64_t u = 0; u < w_.units; ++u) {
    // Sums of depthwise layers are written in the order of units.
    const int64_t sum_at = w_.depthwise ? u : panels_.PlaceOf(u);
    const int64_t start_at = w_.depthwise ? DepthwisePlaceOf(u) : sum_at;
    const float scale = steps_.scales[steps_.scales.size() == 1 ? 0 : static_cast<size_t>(u)];
    start_[static_cast<size_t>(start_at)] = steps_.bias[u];
    scales_[static_cast<size_t>(sum_at)] = direct_ ? scale * steps_.factor : scale;
  }
  if (direct_) steps_.numbers.addend_scale *= steps_.factor;
  steps_.scales = {};
  steps_.bias = nullptr;
  ChooseBands();
}

void PairsInt8::ChooseBands() {
  const int64_t of_line = image_.width * image_.depth, wanted = kNumbersOfBand * Threads();
  const int64_t of_image = image_.LinesOf(w_.out_h) * of_line;
  band_lines_ = w_.out_h;
  if (of_image <= wanted) {
    band_images_ = std::min(w_.batch, wanted / of_image);
    band_images_ = PartsOf(w_.batch, PartsOf(w_.batch, band_images_));
    return;
  }
  // Lines that two bands read are widened twice.
  const int64_t twice = image_.LinesOf(1) - image_.stride_h;
  const int64_t lines = std::max((wanted / of_line - image_.LinesOf(1)) / image_.stride_h + 1,
                                 std::max<int64_t>(1, 4 * twice));
  band_lines_ = PartsOf(w_.out_h, PartsOf(w_.out_h, std::min(lines, w_.out_h)));
}

size_t PairsInt8::scratch_bytes() const {
  const int64_t numbers = image_.SizeOf({.images = band_images_, .lines = band_lines_});
  return static_cast<size_t>(numbers) * sizeof(int16_t) + kBehindInt8Image;
}

void PairsInt8::FillPixels(const int8_t* x, int16_t* to, int64_t pixels) const {
  const int64_t multiplier = image_.multiplier;
  if (multiplier == 1) return loops_.widen(x, to, pixels * w_.depth, x_zero_);
  for (int64_t i = 0; i < pixels * w_.depth; ++i, to += multiplier) {
    std::fill_n(to, multiplier, static_cast<int16_t>(x[i] - x_zero_));
  }
}

void PairsInt8::Fill(const Band& band, const int8_t* x, int16_t* image) const {
  image_.Fill(
      band,
      [&](const Int8Image::Pixels& p) {
        const int64_t at_once = p.from_step == w_.depth ? p.count : 1;
        for (int64_t i = 0; i < p.count; i += at_once) {
          FillPixels(x + p.from + i * p.from_step, image + p.to + i * p.to_step, at_once);
        }
      },
      [&](const Int8Image::Zeros& z) { std::fill_n(image + z.to, z.count, int16_t{0}); });
  // What is read behind the image counts for nothing, but is read.
  std::memset(image + image_.SizeOf(band), 0, kBehindInt8Image);
}

// Where rows of results go from output `first` and a unit on, and what they become there.
Int8SumBlock PairsInt8::BlockOf(int64_t first, int64_t unit, int64_t columns, const float* scales,
                                const void* const* inputs, void* y) const {
  Int8SumBlock block = steps_.numbers;
  block.columns = columns;
  block.scales = scales;
  const int64_t at = first * w_.units + unit;
  block.y = static_cast<int8_t*>(y) + at;
  block.y_step = block.addend_step = w_.units;
  if (direct_ && !steps_.steps.empty()) {
    block.addend = static_cast<const int8_t*>(OperandOf(steps_.steps[0], inputs)) + at;
  }
  return block;
}

void PairsInt8::FinishSums(const Sums& s, const void* const* inputs, void* y) const {
  using Kind = PairsStep::Kind;
  Int8SumBlock block = BlockOf(s.first, s.unit, s.columns, s.scales, inputs, y);
  block.rows = s.rows;
  block.width = s.width;
  if (direct_) return sum_loops_.to_int8(block, s.sums);
  const int64_t at = s.first * w_.units + s.unit;
  alignas(64) std::array<float, kRowsOfSums * kMostPairsPanel> v;
  sum_loops_.to_floats(block, s.sums, v.data());
  for (const PairsStep& step : steps_.steps) {
    switch (step.kind) {
      case Kind::kActivation:
        Isa().unary[static_cast<int>(step.act)](v.data(), v.data(), s.rows * s.width, steps_.alpha);
        break;
      case Kind::kAddChannels:
      case Kind::kAddFloats: {
        const bool whole = step.kind == Kind::kAddFloats;
        const float* from =
            static_cast<const float*>(OperandOf(step, inputs)) + (whole ? at : s.unit);
        sum_loops_.add_floats(block, from, whole ? w_.units : 0, v.data());
        break;
      }
      case Kind::kAddInt8:
        block.addend = static_cast<const int8_t*>(OperandOf(step, inputs)) + at;
        sum_loops_.add_int8(block, v.data());
        block.addend = nullptr;
        break;
    }
  }
  if (steps_.to_int8) {
    block.scales = factors_.data();
    return sum_loops_.floats_to_int8(block, v.data());
  }
  float* to = static_cast<float*>(y) + at;
  for (int64_t r = 0; r < s.rows; ++r, to += w_.units) {
    std::memcpy(to, v.data() + r * s.width, static_cast<size_t>(s.columns) * sizeof(float));
  }
}

void PairsInt8::RunTileRows(const Band& band, const int16_t* image, int64_t from, int64_t to,
                            int64_t first_panel, int64_t last_panel, const void* const* inputs,
                            void* y) const {
  const int64_t per_group = w_.units / w_.groups, channels = w_.depth / w_.groups;
  const int64_t panel = loops_.panel, image_lines = image_.LinesOf(band.lines);
  const int64_t first = (band.image * w_.out_h + band.line) * w_.out_w;
  std::array<int64_t, kRowsOfPart> windows;
  int64_t column_of = from % w_.out_w, line_of = from / w_.out_w % band.lines;
  int64_t window = image_.WindowAt(from, band.lines);
  for (int64_t r = from; r < to; ++r) {
    windows[static_cast<size_t>(r - from)] = window;
    window += image_.stride_w * image_.depth;
    if (++column_of < w_.out_w) continue;
    column_of = 0;
    // To the next line, and behind the last one to the next image.
    window += (image_.stride_h * image_.width - w_.out_w * image_.stride_w) * image_.depth;
    if (++line_of < band.lines) continue;
    line_of = 0;
    window += (image_lines - band.lines * image_.stride_h) * image_.width * image_.depth;
  }
  alignas(64) std::array<int32_t, kRowsOfSums * kMostPairsPanel> sums;
  std::array<const int16_t*, 8> rows;
  const int64_t most = std::min<int64_t>(loops_.rows, rows.size());
  ExactInt8Tile tile;
  tile.rows = rows.data();
  tile.segments = image_.segments.data();
  tile.num_segments = static_cast<int64_t>(image_.segments.size());
  tile.groups = panels_.groups;
  const bool widens = loops_.wide_tile != nullptr && to - from >= kRowsWorthWideWeights &&
                      panels_.of_panel <= kMostWideWeights;
  const auto run_tile = widens ? loops_.wide_tile : loops_.tile;
  alignas(64) std::array<int16_t, kMostWideWeights> wide;
  tile.wide_weights = wide.data();
  for (int64_t p = first_panel; p < last_panel; ++p) {
    const int64_t g = p / panels_.panels, column = p % panels_.panels * panel;
    const int16_t* group_image = image + g * channels;
    tile.weights = weights_->tiles_.data() + p * panels_.of_panel;
    tile.start = start_.data() + p * panel;
    if (widens) loops_.widen(tile.weights, wide.data(), panels_.of_panel, 0);
    Sums block;
    block.sums = sums.data();
    block.width = panel;
    block.columns = std::min(panel, per_group - column);
    block.unit = g * per_group + column;
    block.scales = scales_.data() + p * panel;
    Int8SumBlock direct;
    if (widens && direct_) {
      direct = BlockOf(first + from, block.unit, block.columns, block.scales, inputs, y);
      tile.block = &direct;
    }
    for (int64_t begin = from; begin < to; begin += kRowsOfSums) {
      block.rows = std::min(kRowsOfSums, to - begin);
      block.first = first + begin;
      for (int64_t r = 0; r < block.rows; r += most) {
        const int64_t n = std::min(most, block.rows - r);
        for (int64_t i = 0; i < n; ++i) {
          rows[static_cast<size_t>(i)] =
              group_image + windows[static_cast<size_t>(begin - from + r + i)];
        }
        tile.sums = sums.data() + r * panel;
        run_tile(tile, static_cast<int>(n));
        if (tile.block == nullptr) continue;
        direct.y += n * direct.y_step;
        if (direct.addend != nullptr) direct.addend += n * direct.addend_step;
      }
      if (tile.block == nullptr) FinishSums(block, inputs, y);
    }
  }
}

void PairsInt8::RunTiles(const Band& band, const int16_t* image, const void* const* inputs,
                         void* y) const {
  const int64_t outputs = band.images * band.lines * w_.out_w;
  const int64_t panels = w_.groups * panels_.panels;
  // Several threads share out rows, or where there are few the panels.
  const int64_t wanted = Threads() == 1 ? 1 : 4 * int64_t{Threads()};
  const int64_t rows =
      std::min(kRowsOfPart,
               PartsOf(PartsOf(outputs, PartsOf(outputs, kRowsOfPart)), loops_.rows) * loops_.rows);
  const int64_t row_parts = PartsOf(outputs, rows);
  const int64_t panel_parts = std::clamp<int64_t>(PartsOf(wanted, row_parts), 1, panels);
  const int64_t work = panels * panels_.of_panel * outputs / (row_parts * panel_parts);
  SharedParallelFor(row_parts * panel_parts, std::max<int64_t>(1, kPairsWorkOfThread / (work + 1)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t part = i / panel_parts, p = i % panel_parts;
                        RunTileRows(band, image, part * rows, std::min(outputs, (part + 1) * rows),
                                    p * panels / panel_parts, (p + 1) * panels / panel_parts,
                                    inputs, y);
                      }
                    });
}

void PairsInt8::RunDepthwise(const Band& band, const int16_t* image, const void* const* inputs,
                             void* y) const {
  constexpr int64_t kBlock = kExactDepthwiseBlock;
  const int64_t pairs = static_cast<int64_t>(image_.segments.size()) / 2;
  const int64_t first = (band.image * w_.out_h + band.line) * w_.out_w;
  const int64_t work = w_.out_w * w_.units * pairs * 2;
  SharedParallelFor(band.images * band.lines, std::max<int64_t>(1, kPairsWorkOfThread / 4 / work),
                    [&](int64_t begin, int64_t end) {
                      alignas(64) std::array<int32_t, kRowsOfSums * kBlock> sums;
                      ExactInt8Depthwise run;
                      run.taps = image_.segments.data();
                      run.pairs = pairs;
                      run.x_step = image_.stride_w * image_.depth;
                      run.sums = sums.data();
                      Sums block;
                      block.sums = sums.data();
                      block.width = kBlock;
                      std::array<const int16_t*, kLinesOfBlock> lines;
                      for (int64_t from = begin; from < end; from += kLinesOfBlock) {
                        const int64_t count = std::min(kLinesOfBlock, end - from);
                        for (int64_t i = 0; i < count; ++i) {
                          lines[static_cast<size_t>(i)] =
                              image + image_.WindowAt((from + i) * w_.out_w, band.lines);
                        }
                        for (int64_t c = 0; c < w_.units; c += kBlock) {
                          run.weights = weights_->wide_.data() + c * pairs * 2;
                          run.start = start_.data() + c;
                          run.channels = block.columns = std::min(kBlock, w_.units - c);
                          block.unit = c;
                          block.scales = scales_.data() + c;
                          for (int64_t i = 0; i < count; ++i) {
                            for (int64_t r = 0; r < w_.out_w; r += kRowsOfSums) {
                              run.x = lines[static_cast<size_t>(i)] + c + r * run.x_step;
                              run.results = block.rows = std::min(kRowsOfSums, w_.out_w - r);
                              block.first = first + (from + i) * w_.out_w + r;
                              if (direct_ && loops_.depthwise_of_block != nullptr) {
                                const Int8SumBlock to =
                                    BlockOf(block.first, c, block.columns, block.scales, inputs, y);
                                run.block = &to;
                                loops_.depthwise_of_block(run);
                                continue;
                              }
                              loops_.depthwise(run);
                              FinishSums(block, inputs, y);
                            }
                          }
                        }
                      }
                    });
}

void PairsInt8::Run(const void* const* inputs, void* y, void* scratch) const {
  auto* image = static_cast<int16_t*>(scratch);
  const auto* x = static_cast<const int8_t*>(inputs[0]);
  for (int64_t b = 0; b < w_.batch; b += band_images_) {
    for (int64_t line = 0; line < w_.out_h; line += band_lines_) {
      const Band band{b, std::min(band_images_, w_.batch - b), line,
                      std::min(band_lines_, w_.out_h - line)};
      Fill(band, x, image);
      if (w_.depthwise) {
        RunDepthwise(band, image, inputs, y);
      } else {
        RunTiles(band, image, inputs, y);
      }
    }
  }
}

}  // namespace smelt::nn
