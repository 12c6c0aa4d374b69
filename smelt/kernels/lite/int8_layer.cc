#include "smelt/kernels/lite/int8_layer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/isa.h"

namespace smelt::lite {
namespace {

// Numbers of the image that rows of tiles share a panel of weights over: they stay in the second
// cache beside it.
constexpr int64_t kRowsOfCache = 96 << 10;
// Multiplications that are worth a thread, and numbers that are worth one to widen.
constexpr int64_t kWorthAThread = 1 << 17;
constexpr int64_t kWorthWidening = 1 << 15;
// Rows of which a product of matrices is faster than one by one.
constexpr int64_t kWorthAMatrix = 3;

int64_t RoundedUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

bool MultipliesBytes(const nn::Int8Window& s) {
  return !s.depthwise && IsaExactInt8().byte_tile != nullptr;
}
bool MultipliesMatrices(const nn::Int8Window& s) {
  return MultipliesBytes(s) && IsaExactInt8().matrix_tile != nullptr &&
         s.outputs() >= kWorthAMatrix;
}

bool IsOneRow(const nn::Int8Window& s) {
  return MultipliesBytes(s) && !MultipliesMatrices(s) && s.outputs() == 1 && s.groups == 1 &&
         s.in_h == 1 && s.in_w == 1 && s.kernel_h == 1 && s.kernel_w == 1 && s.top == 0 &&
         s.left == 0 && s.depth * s.units < kWorthAThread;
}

}  // namespace

Int8Layer::Int8Layer(const nn::Int8Window& shape, const Int8Numbers& numbers, const int8_t* weights)
    : loops_(IsaExactInt8()),
      s_(shape),
      in_zero_(numbers.in_zero),
      image_(shape),
      bytes_(MultipliesBytes(shape)),
      matrices_(MultipliesMatrices(shape)),
      panels_(image_, bytes_, matrices_ ? loops_.matrix_groups : 1),
      one_row_(IsOneRow(shape) && numbers.factors.empty()) {
  SetShape();
  rounded_up_ = numbers.rounded_up;
  ends_.zero = numbers.out_zero;
  ends_.low = numbers.range.low;
  ends_.high = numbers.range.high;
  for (int64_t u = 0; u < s_.units; ++u) {
    const auto at = static_cast<size_t>(PlaceOf(u));
    if (numbers.bias != nullptr) start_[at] = numbers.bias[u];
    const auto by_unit = static_cast<size_t>(u);
    if (numbers.factors.empty()) {
      scale_of_sum_[at] = numbers.scales[numbers.scales.size() == 1 ? 0 : by_unit];
    } else {
      factors_.push_back(numbers.factors[numbers.factors.size() == 1 ? 0 : by_unit]);
    }
  }
  Pack(weights);
}

Int8Layer::Int8Layer(const nn::Int8Window& shape, const HybridNumbers& numbers,
                     const int8_t* weights)
    : loops_(IsaExactInt8()),
      s_(shape),
      hybrid_(true),
      by_row_(numbers.by_row),
      about_zero_(numbers.about_zero),
      image_(shape),
      bytes_(MultipliesBytes(shape)),
      matrices_(MultipliesMatrices(shape)),
      panels_(image_, bytes_, matrices_ ? loops_.matrix_groups : 1),
      one_row_(false) {
  SetShape();
  scales_.assign(static_cast<size_t>(s_.units), numbers.scales[0]);
  if (numbers.scales.size() != 1) scales_.assign(numbers.scales.begin(), numbers.scales.end());
  bias_.resize(static_cast<size_t>(s_.units));
  if (numbers.bias != nullptr) std::copy_n(numbers.bias, s_.units, bias_.begin());
  low_ = numbers.low;
  high_ = numbers.high;
  Pack(weights);
}

// Every place has numbers.
void Int8Layer::SetShape() {
  const int64_t padded =
      s_.depthwise ? nn::DepthwisePlaces(s_.units) : panels_.num_panels() * panels_.panel;
  start_.resize(static_cast<size_t>(padded));
  scale_of_sum_.resize(static_cast<size_t>(padded));
}

void Int8Layer::Pack(const int8_t* weights) {
  if (s_.depthwise) {
    wide_weights_ = nn::PackDepthwiseInt8(s_, weights);
  } else {
    PackTiles(weights);
  }
}

void Int8Layer::PackTiles(const int8_t* weights) {
  weights_.resize(static_cast<size_t>(panels_.size()));
  panels_.Pack(weights, true, weights_.data());
  if (!bytes_) return;
  weight_sums_.resize(start_.size());
  const int64_t of_unit = panels_.num_segments * panels_.length;
  ParallelFor(s_.units, std::max<int64_t>(1, kWorthWidening / of_unit),
              [&](int64_t begin, int64_t end) {
                for (int64_t u = begin; u < end; ++u) {
                  uint32_t sum = 0;
                  for (int64_t i = 0; i < of_unit; ++i) {
                    sum += static_cast<uint32_t>(int32_t{weights[u * of_unit + i]});
                  }
                  const auto at = static_cast<size_t>(PlaceOf(u));
                  weight_sums_[at] = static_cast<int32_t>(sum);
                  if (hybrid_) continue;
                  start_[at] = static_cast<int32_t>(static_cast<uint32_t>(start_[at]) -
                                                    sum * static_cast<uint32_t>(in_zero_ + 128));
                }
              });
}

size_t Int8Layer::scratch_bytes() const {
  return static_cast<size_t>(image_.SizeOf(AllOfIt())) * sizeof(int16_t) + nn::kBehindInt8Image +
         static_cast<size_t>(hybrid_ ? RoundedUp(num_scaled() * sizeof(Scaled), 64) : 0);
}

// What numbers are scaled by stands before the image.
void* Int8Layer::ImageIn(void* scratch) const {
  return static_cast<char*>(scratch) + (hybrid_ ? RoundedUp(num_scaled() * sizeof(Scaled), 64) : 0);
}

ExactInt8Scales Int8Layer::ScalesAt(int64_t place) const {
  ExactInt8Scales scales = ends_;
  scales.scale = scale_of_sum_.data() + place;
  return scales;
}

void Int8Layer::FinishByFactors(const int32_t* sums, int64_t unit, int64_t n, int8_t* y) const {
  const Range range = {ends_.low, ends_.high};
  for (int64_t c = 0; c < n; ++c) {
    const Factor& f = factors_[static_cast<size_t>(unit + c)];
    const int32_t steps = unit + c < rounded_up_ ? TimesUp(sums[c], f) : Times(sums[c], f);
    y[c] = static_cast<int8_t>(range.Clamp(steps, ends_.zero));
  }
}

const Int8Layer::Scaled& Int8Layer::HowOf(const Scaled* scaled, int64_t output) const {
  if (by_row_) return scaled[output];
  return scaled[s_.batch == 1 ? 0 : output / (s_.out_h * s_.out_w)];
}

void Int8Layer::FillPixels(const int8_t* x, int16_t* to, int64_t pixels, const Scaled*) const {
  if (image_.multiplier == 1) return loops_.widen(x, to, pixels * s_.depth, in_zero_);
  for (int64_t i = 0; i < pixels * s_.depth; ++i, to += image_.multiplier) {
    std::fill_n(to, image_.multiplier, static_cast<int16_t>(x[i] - in_zero_));
  }
}

void Int8Layer::FillPixels(const float* x, int16_t* to, int64_t pixels,
                           const Scaled* scaled) const {
  for (int64_t p = 0; by_row_ && p < pixels; ++p) {
    loops_.steps_of(x + p * s_.depth, to + p * s_.depth, s_.depth, scaled[p].inverse, scaled[p].low,
                    scaled[p].high);
  }
  if (by_row_) return;
  const int64_t n = pixels * s_.depth;
  const auto steps = s_.depthwise ? loops_.steps_away_of : loops_.steps_of;
  steps(x, to, n, scaled->inverse, scaled->low, scaled->high);
  if (image_.multiplier == 1) return;
  // From behind, where there is room.
  for (int64_t i = n - 1; i >= 0; --i)
    std::fill_n(to + i * image_.multiplier, image_.multiplier, to[i]);
}

void Int8Layer::FillPixels(const int8_t* x, uint8_t* to, int64_t pixels, const Scaled*) const {
  loops_.to_bytes(x, to, pixels * s_.depth);
}

void Int8Layer::FillPixels(const float* x, uint8_t* to, int64_t pixels,
                           const Scaled* scaled) const {
  const auto row = [&](const float* from, uint8_t* bytes, int64_t n, const Scaled& how) {
    loops_.bytes_of(from, bytes, n, how.inverse, how.low, how.high);
  };
  if (!by_row_) return row(x, to, pixels * s_.depth, *scaled);
  for (int64_t p = 0; p < pixels; ++p) {
    row(x + p * s_.depth, to + p * s_.depth, s_.depth, scaled[p]);
  }
}

template <typename N>
N Int8Layer::ZeroOfImage(const Scaled* how) const {
  if (std::is_same_v<N, int16_t>) return 0;
  return static_cast<N>(hybrid_ ? -static_cast<int32_t>(how->low) : in_zero_ + 128);
}

Int8Layer::Scaled Int8Layer::ScaledOfRange(float low, float high) {
  const float range = high - low;
  if (!(range > 0) || !std::isfinite(range)) return {1, 0, 0, 0};
  Scaled s;
  const double scale = static_cast<double>(range) / 255;
  s.scale = static_cast<float>(scale);
  s.inverse = 1.0f / s.scale;
  // The zero point is that by which the end with the smaller error is met.
  const double at_low = low / scale, at_high = high / scale;
  const double zero =
      128 + std::abs(at_low) < 127 + std::abs(at_high) ? -128 - at_low : 127 - at_high;
  const auto whole = static_cast<float>(std::round(std::clamp(zero, -128.0, 127.0)));
  if (!std::isfinite(s.inverse)) return {1, 0, 0, 0};
  s.low = -128 - whole;
  s.high = 127 - whole;
  return s;
}

Int8Layer::Scaled Int8Layer::ScaledAboutZero(float most) {
  if (!(most > 0) || !std::isfinite(127 / most)) return {1, 0, 0, 0};
  return {most / 127, 127 / most, -127, 127};
}

void Int8Layer::FindScales(const float* x, Scaled* scaled) const {
  const int64_t n = by_row_ ? s_.depth : s_.in_h * s_.in_w * s_.depth;
  ParallelFor(
      num_scaled(), std::max<int64_t>(1, kWorthWidening / n), [&](int64_t begin, int64_t end) {
        if (!s_.depthwise && !about_zero_) {
          loops_.steps_of_rows(x + begin * n, end - begin, n, scaled + begin);
          return;
        }
        for (int64_t i = begin; i < end; ++i) {
          const float low = std::min(Isa().min(x + i * n, n), 0.0f);
          const float high = std::max(Isa().max(x + i * n, n), 0.0f);
          scaled[i] =
              about_zero_ ? ScaledAboutZero(std::max(-low, high)) : ScaledOfRange(low, high);
        }
      });
}

template <typename T, typename N>
void Int8Layer::FillImage(const T* x, N* image, const Scaled* scaled) const {
  image_.Fill(
      AllOfIt(),
      [&](const nn::Int8Image::Pixels& p) {
        const Scaled* how = scaled == nullptr ? nullptr : scaled + (by_row_ ? p.first : p.image);
        const int64_t at_once = p.from_step == s_.depth ? p.count : 1;
        for (int64_t i = 0; i < p.count; i += at_once) {
          FillPixels(x + p.from + i * p.from_step, image + p.to + i * p.to_step, at_once, how);
        }
      },
      [&](const nn::Int8Image::Zeros& z) {
        std::fill_n(image + z.to, z.count,
                    ZeroOfImage<N>(scaled == nullptr ? nullptr : scaled + z.image));
      });
  // What is read behind the image counts for nothing, but is read.
  std::memset(image + image_.SizeOf(AllOfIt()), 0, nn::kBehindInt8Image);
}

template <typename N, typename T>
void Int8Layer::RunTileRows(const N* image, const Scaled* scaled, int64_t from, int64_t to,
                            int64_t first_panel, int64_t last_panel, T* y) const {
  constexpr int kMostRows = 32, kMostPanel = 64;
  const int64_t per_group = s_.units / s_.groups, channels = s_.depth / s_.groups;
  const int64_t step = image_.stride_w * image_.depth;  // from window to window of a line
  const auto run_tile = matrices_ ? loops_.matrix_tile : bytes_ ? loops_.byte_tile : loops_.tile;
  ExactInt8Tile tile;
  tile.segments = image_.segments.data();
  tile.num_segments = panels_.num_segments;
  tile.groups = panels_.groups;
  tile.y_step = s_.units;
  std::array<const N*, kMostRows> rows;
  std::array<int32_t, kMostRows * kMostPanel> sums;
  if constexpr (std::is_same_v<N, uint8_t>) {
    tile.byte_rows = rows.data();
  } else {
    tile.rows = rows.data();
  }
  if (std::is_same_v<T, float> || !factors_.empty()) tile.sums = sums.data();
  const int most = std::min(static_cast<int>(rows_of_tile()), kMostRows);
  std::array<ExactInt8Row, kMostRows> how_rows;
  ExactInt8Floats floats;
  floats.low = low_, floats.high = high_;
  floats.sums_step = loops_.panel;
  floats.y_step = s_.units;
  if (matrices_) loops_.begin_matrices();
  for (int64_t panel = first_panel; panel < last_panel; ++panel) {
    const int64_t g = panel / panels_.panels, column = panel % panels_.panels * loops_.panel;
    const int64_t unit = g * per_group + column;
    tile.weights = weights_.data() + panel * panels_.of_panel;
    tile.start = start_.data() + panel * loops_.panel;
    tile.scales = ScalesAt(panel * loops_.panel);
    tile.columns = std::min(loops_.panel, per_group - column);
    if constexpr (std::is_same_v<T, float>) {
      if (bytes_) floats.weight_sums = weight_sums_.data() + panel * loops_.panel;
      floats.scales = scales_.data() + unit;
      floats.bias = bias_.data() + unit;
      floats.columns = tile.columns;
    }
    int64_t line_ends = from, window = 0;
    for (int64_t r = from; r < to; r += most) {
      const int n = static_cast<int>(std::min<int64_t>(most, to - r));
      // Divisions only where a line begins.
      for (int i = 0; i < n; ++i, window += step) {
        if (r + i == line_ends) {
          window = image_.WindowAt(r + i, s_.out_h) + g * channels;
          line_ends = s_.out_w == 1 ? r + i + 1 : (r + i) / s_.out_w * s_.out_w + s_.out_w;
        }
        rows[static_cast<size_t>(i)] = image + window;
      }
      if constexpr (std::is_same_v<T, int8_t>) {
        tile.y = y + r * s_.units + unit;
        run_tile(tile, n);
        for (int i = 0; tile.sums != nullptr && i < n; ++i) {
          FinishByFactors(sums.data() + i * loops_.panel, unit, tile.columns,
                          tile.y + i * s_.units);
        }
      } else {
        run_tile(tile, n);
        for (int i = 0; i < n; ++i) {
          const Scaled& how = HowOf(scaled, r + i);
          how_rows[static_cast<size_t>(i)] = {how.scale, static_cast<int32_t>(how.low)};
        }
        floats.y = y + r * s_.units + unit;
        loops_.to_floats(sums.data(), how_rows.data(), n, floats);
      }
    }
  }
  if (matrices_) loops_.end_matrices();
}

template <typename N, typename T>
void Int8Layer::RunTiles(const N* image, const Scaled* scaled, T* y) const {
  const int64_t outputs = s_.outputs(), panels = panels_.num_panels();
  // A window's own numbers of the image, about.
  const int64_t of_output = s_.depth * image_.stride_h * image_.stride_w;
  int64_t rows = RoundedUp(std::max<int64_t>(1, kRowsOfCache / of_output), rows_of_tile());
  rows = std::min(rows, RoundedUp(outputs, rows_of_tile()));
  const int64_t row_parts = (outputs + rows - 1) / rows;
  // Several threads share out rows, or where there are few the panels.
  const int64_t wanted = Threads() == 1 ? 1 : 4 * int64_t{Threads()};
  const int64_t panel_parts = std::clamp<int64_t>((wanted + row_parts - 1) / row_parts, 1, panels);
  const int64_t of_part = s_.units * outputs * panels_.num_segments * panels_.groups *
                          panels_.group / (row_parts * panel_parts);
  SharedParallelFor(row_parts * panel_parts, std::max<int64_t>(1, kWorthAThread / (of_part + 1)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t part = i / panel_parts, p = i % panel_parts;
                        RunTileRows(image, scaled, part * rows,
                                    std::min(outputs, (part + 1) * rows), p * panels / panel_parts,
                                    (p + 1) * panels / panel_parts, y);
                      }
                    });
}

template <typename T>
void Int8Layer::RunDepthwise(const int16_t* image, const Scaled* scaled, T* y) const {
  constexpr int64_t kBlock = kExactDepthwiseBlock, kResults = 32;
  const int64_t pairs = static_cast<int64_t>(image_.segments.size()) / 2;
  const int64_t of_line = s_.out_w * s_.units * pairs * 2;
  SharedParallelFor(s_.batch * s_.out_h, std::max<int64_t>(1, kWorthAThread / 4 / of_line),
                    [&](int64_t begin, int64_t end) {
                      std::array<int32_t, kBlock * kResults> sums;
                      ExactInt8Depthwise run;
                      run.taps = image_.segments.data();
                      run.pairs = pairs;
                      run.x_step = image_.stride_w * image_.depth;
                      run.y_step = s_.units;
                      if (std::is_same_v<T, float> || !factors_.empty()) run.sums = sums.data();
                      for (int64_t line = begin; line < end; ++line) {
                        const int16_t* x = image + image_.WindowAt(line * s_.out_w, s_.out_h);
                        for (int64_t c = 0; c < s_.units; c += kBlock) {
                          run.weights = wide_weights_.data() + c * pairs * 2;
                          run.start = start_.data() + c;
                          run.scales = ScalesAt(c);
                          run.channels = std::min(kBlock, s_.units - c);
                          run.x = x + c;
                          T* to = y + line * s_.out_w * s_.units + c;
                          if (std::is_same_v<T, int8_t> && factors_.empty()) {
                            run.results = s_.out_w;
                            run.y = reinterpret_cast<int8_t*>(to);
                            loops_.depthwise(run);
                            continue;
                          }
                          for (int64_t r = 0; r < s_.out_w; r += kResults) {
                            run.results = std::min(kResults, s_.out_w - r);
                            run.x = x + c + r * run.x_step;
                            loops_.depthwise(run);
                            if constexpr (std::is_same_v<T, float>) {
                              for (int64_t i = 0; i < run.results; ++i) {
                                loops_.to_float_by_four(
                                    sums.data() + i * kBlock, HowOf(scaled, line * s_.out_w).scale,
                                    scales_.data() + c, bias_.data() + c, low_, high_,
                                    to + (r + i) * s_.units, run.channels);
                              }
                            } else {
                              for (int64_t i = 0; i < run.results; ++i) {
                                FinishByFactors(sums.data() + i * kBlock, c, run.channels,
                                                to + (r + i) * s_.units);
                              }
                            }
                          }
                        }
                      }
                    });
}

template <typename T>
void Int8Layer::RunAny(const T* x, const Scaled* scaled, void* image, T* y) const {
  if (bytes_) {
    auto* bytes = static_cast<uint8_t*>(image);
    FillImage(x, bytes, scaled);
    return RunTiles(bytes, scaled, y);
  }
  auto* numbers = static_cast<int16_t*>(image);
  FillImage(x, numbers, scaled);
  if (s_.depthwise) {
    RunDepthwise(numbers, scaled, y);
  } else {
    RunTiles(numbers, scaled, y);
  }
}

void Int8Layer::RunRow(const int8_t* x, uint8_t* image, int8_t* y) const {
  loops_.to_bytes(x, image, s_.depth);
  std::memset(image + s_.depth, 0, nn::kBehindInt8Image);
  const uint8_t* row = image;
  ExactInt8Tile tile;
  tile.byte_rows = &row;
  tile.segments = image_.segments.data();
  tile.num_segments = 1;
  tile.groups = panels_.groups;
  tile.y_step = s_.units;
  for (int64_t unit = 0, panel = 0; unit < s_.units; unit += loops_.panel, ++panel) {
    tile.weights = weights_.data() + panel * panels_.of_panel;
    tile.start = start_.data() + unit;
    tile.scales = ScalesAt(unit);
    tile.columns = std::min(loops_.panel, s_.units - unit);
    tile.y = y + unit;
    loops_.byte_tile(tile, 1);
  }
}

void Int8Layer::Run(const int8_t* x, int8_t* y, void* scratch) const {
  if (one_row_) return RunRow(x, static_cast<uint8_t*>(ImageIn(scratch)), y);
  RunAny(x, nullptr, ImageIn(scratch), y);
}

void Int8Layer::Run(const float* x, float* y, void* scratch) const {
  auto* scaled = static_cast<Scaled*>(scratch);
  FindScales(x, scaled);
  RunAny(x, scaled, ImageIn(scratch), y);
}

}  // namespace smelt::lite
