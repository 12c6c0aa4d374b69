#include "smelt/kernels/lite/int16_layer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "smelt/base/parallel.h"

namespace smelt::lite {
namespace {

// Products of -32768 and -128 of which 32 bits hold the sum.
constexpr int64_t kProductsOfPart = 504;
constexpr int64_t kInt16WorkOfThread = 1 << 16;
// Numbers of the image that a panel's rows share: they stay in the second cache beside it.
constexpr int64_t kInt16RowsOfCache = 96 << 10;
constexpr int kInt16Rows = 8, kInt16Panel = 64;

}  // namespace

bool Int16Layer::Suits(const nn::Int8Window& s) {
  return !s.depthwise || s.kernel_h * s.kernel_w < kProductsOfPart;
}

Int16Layer::Int16Layer(const nn::Int8Window& shape, const Int16Numbers& numbers,
                       const int8_t* weights)
    : loops_(IsaExactInt8()),
      s_(shape),
      image_(shape),
      panels_(image_, false, 1),
      narrow_(numbers.narrow),
      range_(numbers.range) {
  for (int64_t u = 0; u < s_.units; ++u) {
    bias_.push_back(numbers.bias == nullptr ? 0 : numbers.bias[u]);
    const size_t at = numbers.factors.size() == 1 ? 0 : static_cast<size_t>(u);
    if (narrow_) {
      narrow_factors_.push_back(numbers.factors[at]);
      continue;
    }
    if (!numbers.doubles.empty()) {
      doubles_.push_back(numbers.doubles[at]);
      continue;
    }
    const WideFactor wide(numbers.factors[at]);
    factors_.push_back(wide.fraction);
    shifts_.push_back(wide.shift);
  }
  if (s_.depthwise) {
    wide_weights_ = nn::PackDepthwiseInt8(s_, weights);
    return;
  }
  weights_.resize(static_cast<size_t>(panels_.size()));
  panels_.Pack(weights, true, weights_.data());
  const int64_t most = kProductsOfPart / panels_.group;  // groups
  const int64_t together = std::max<int64_t>(1, most / panels_.groups);
  for (int64_t s = 0; s < panels_.num_segments; s += together) {
    for (int64_t g = 0; g < panels_.groups; g += most) {
      parts_.push_back(
          {s, std::min(together, panels_.num_segments - s), g, std::min(most, panels_.groups - g)});
    }
  }
}

size_t Int16Layer::scratch_bytes() const {
  return static_cast<size_t>(image_.SizeOf(AllOfIt())) * sizeof(int16_t) + nn::kBehindInt8Image;
}

void Int16Layer::FillImage(const int16_t* x, int16_t* image) const {
  image_.Fill(
      AllOfIt(),
      [&](const nn::Int8Image::Pixels& p) {
        const int64_t at_once = p.from_step == s_.depth ? p.count : 1, n = at_once * s_.depth;
        for (int64_t i = 0; i < p.count; i += at_once) {
          const int16_t* from = x + p.from + i * p.from_step;
          int16_t* to = image + p.to + i * p.to_step;
          if (image_.multiplier == 1) {
            std::copy_n(from, n, to);
            continue;
          }
          for (int64_t c = 0; c < n; ++c, to += image_.multiplier) {
            std::fill_n(to, image_.multiplier, from[c]);
          }
        }
      },
      [&](const nn::Int8Image::Zeros& z) { std::fill_n(image + z.to, z.count, int16_t{0}); });
  std::memset(image + image_.SizeOf(AllOfIt()), 0, nn::kBehindInt8Image);
}

void Int16Layer::Finish(int64_t* sums, int64_t unit, int64_t n, int16_t* y) const {
  const auto at = static_cast<size_t>(unit);
  if (!factors_.empty()) {
    loops_.wide_to_int16(sums, bias_.data() + at, factors_.data() + at, shifts_.data() + at,
                         range_.low, range_.high, y, n);
    return;
  }
  for (int64_t c = 0; c < n; ++c) {
    const auto u = at + static_cast<size_t>(c);
    const auto sum =
        static_cast<int64_t>(static_cast<uint64_t>(sums[c]) + static_cast<uint64_t>(bias_[u]));
    const int32_t steps = narrow_ ? TimesUp(static_cast<int32_t>(sum), narrow_factors_[u])
                                  : TimesInDouble(sum, doubles_[u]);
    y[c] = static_cast<int16_t>(range_.Clamp(steps));
  }
}

void Int16Layer::RunRows(const int16_t* image, int64_t from, int64_t to, int64_t first_panel,
                         int64_t last_panel, int16_t* y) const {
  const int64_t per_group = s_.units / s_.groups, channels = s_.depth / s_.groups;
  const int64_t panel = loops_.panel, of_group = panel * panels_.group;
  const int most = std::min(loops_.rows, kInt16Rows);
  std::array<const int16_t*, kInt16Rows> rows;
  std::array<int32_t, kInt16Rows * kInt16Panel> sums;
  std::array<int64_t, kInt16Rows * kInt16Panel> wide;
  static constexpr std::array<int32_t, kInt16Panel> kZeros = {};
  ExactInt8Tile tile;
  tile.rows = rows.data();
  tile.start = kZeros.data();
  tile.sums = sums.data();
  for (int64_t p = first_panel; p < last_panel; ++p) {
    const int64_t g = p / panels_.panels, column = p % panels_.panels * panel;
    const int64_t unit = g * per_group + column;
    tile.columns = std::min(panel, per_group - column);
    for (int64_t r = from; r < to; r += most) {
      const int n = static_cast<int>(std::min<int64_t>(most, to - r));
      std::array<const int16_t*, kInt16Rows> windows;
      for (int i = 0; i < n; ++i) {
        windows[static_cast<size_t>(i)] = image + image_.WindowAt(r + i, s_.out_h) + g * channels;
      }
      wide.fill(0);
      for (const Part& part : parts_) {
        tile.segments = image_.segments.data() + part.segment;
        tile.num_segments = part.segments;
        tile.groups = part.groups;
        tile.weights = weights_.data() + p * panels_.of_panel +
                       (part.segment * panels_.groups + part.group) * of_group;
        for (int i = 0; i < n; ++i) {
          rows[static_cast<size_t>(i)] =
              windows[static_cast<size_t>(i)] + part.group * panels_.group;
        }
        loops_.tile(tile, n);
        loops_.add_to_wide(sums.data(), wide.data(), n * panel);
      }
      for (int i = 0; i < n; ++i) {
        Finish(wide.data() + i * panel, unit, tile.columns, y + (r + i) * s_.units + unit);
      }
    }
  }
}

void Int16Layer::RunTiles(const int16_t* image, int16_t* y) const {
  const int64_t outputs = s_.outputs(), panels = panels_.num_panels();
  const int64_t of_output = s_.depth * image_.stride_h * image_.stride_w;
  int64_t rows = std::max<int64_t>(1, kInt16RowsOfCache / of_output / loops_.rows) * loops_.rows;
  rows = std::min(rows, (outputs + loops_.rows - 1) / loops_.rows * loops_.rows);
  const int64_t row_parts = (outputs + rows - 1) / rows;
  // Several threads share out rows, or where there are few the panels.
  const int64_t wanted = Threads() == 1 ? 1 : 4 * int64_t{Threads()};
  const int64_t panel_parts = std::clamp<int64_t>((wanted + row_parts - 1) / row_parts, 1, panels);
  const int64_t of_part = s_.units * outputs * panels_.num_segments * panels_.groups *
                          panels_.group / (row_parts * panel_parts);
  SharedParallelFor(row_parts * panel_parts,
                    std::max<int64_t>(1, kInt16WorkOfThread / (of_part + 1)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t part = i / panel_parts, p = i % panel_parts;
                        RunRows(image, part * rows, std::min(outputs, (part + 1) * rows),
                                p * panels / panel_parts, (p + 1) * panels / panel_parts, y);
                      }
                    });
}

void Int16Layer::RunDepthwise(const int16_t* image, int16_t* y) const {
  constexpr int64_t kBlock = kExactDepthwiseBlock, kResults = 32;
  const int64_t pairs = static_cast<int64_t>(image_.segments.size()) / 2;
  const int64_t of_line = s_.out_w * s_.units * pairs * 2;
  static constexpr std::array<int32_t, kBlock> kZeros = {};
  SharedParallelFor(s_.batch * s_.out_h, std::max<int64_t>(1, kInt16WorkOfThread / of_line),
                    [&](int64_t begin, int64_t end) {
                      std::array<int32_t, kBlock * kResults> sums;
                      std::array<int64_t, kBlock * kResults> wide;
                      ExactInt8Depthwise run;
                      run.taps = image_.segments.data();
                      run.pairs = pairs;
                      run.x_step = image_.stride_w * image_.depth;
                      run.start = kZeros.data();
                      run.sums = sums.data();
                      for (int64_t line = begin; line < end; ++line) {
                        const int16_t* x = image + image_.WindowAt(line * s_.out_w, s_.out_h);
                        int16_t* to = y + line * s_.out_w * s_.units;
                        for (int64_t c = 0; c < s_.units; c += kBlock) {
                          run.weights = wide_weights_.data() + c * pairs * 2;
                          run.channels = std::min(kBlock, s_.units - c);
                          for (int64_t r = 0; r < s_.out_w; r += kResults) {
                            run.results = std::min(kResults, s_.out_w - r);
                            run.x = x + c + r * run.x_step;
                            loops_.depthwise(run);
                            wide.fill(0);
                            loops_.add_to_wide(sums.data(), wide.data(), run.results * kBlock);
                            for (int64_t i = 0; i < run.results; ++i) {
                              Finish(wide.data() + i * kBlock, c, run.channels,
                                     to + (r + i) * s_.units + c);
                            }
                          }
                        }
                      }
                    });
}

void Int16Layer::Run(const int16_t* x, int16_t* y, void* scratch) const {
  auto* image = static_cast<int16_t*>(scratch);
  FillImage(x, image);
  if (s_.depthwise) {
    RunDepthwise(image, y);
  } else {
    RunTiles(image, y);
  }
}

}  // namespace smelt::lite
