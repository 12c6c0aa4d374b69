#include "smelt/kernels/nn/planar_conv.h"

#include <algorithm>

#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/planar.h"

namespace smelt::nn {
namespace {

constexpr int64_t kMostTapRows = 32;  // of a window, with what lies between them

int64_t RowsOfWindow(const ConvProblem& p) { return (p.kernel[0] - 1) * p.dilations[0] + 1; }

// The lines of the image that a window needs, as planes with zeros beside them.
struct PlanarLines {
  explicit PlanarLines(const ConvProblem& p)
      : rows(RowsOfWindow(p)), left(std::max<int64_t>(0, p.pad_before[1])) {
    const int64_t lanes = IsaPlanar().lanes;
    const int64_t columns = (p.out[1] + lanes - 1) / lanes * lanes;
    const int64_t read = columns + (p.kernel[1] - 1) * p.dilations[1] - p.pad_before[1];
    pitch = left + std::max(p.in[1], read);
    pitch = (pitch + lanes - 1) / lanes * lanes;
    // Planes a page apart would share few places of the nearest cache.
    if (pitch % 1024 == 0) pitch += lanes;
  }
  int64_t rows, left, pitch;
};

class BoundPlanarConv final : public BoundKernel {
 public:
  BoundPlanarConv(const ConvProblem& p, const TiledSteps& steps, int addend,
                  std::span<const float> weights, const float* bias, const PixelPlaces* places)
      : batch_(p.batch),
        depth_(p.in_depth),
        channels_(p.out_depth),
        in_h_(p.in[0]),
        in_w_(p.in[1]),
        out_h_(p.out[0]),
        out_w_(p.out[1]),
        tap_rows_(p.kernel[0]),
        taps_(p.kernel[1]),
        stride_(p.strides[0]),
        dilation_h_(p.dilations[0]),
        dilation_w_(p.dilations[1]),
        top_(p.pad_before[0]),
        before_(p.pad_before[1]),
        steps_(steps),
        addend_(addend),
        lines_(p) {
    if (places != nullptr) {
      places_ = *places;
    } else {
      places_.step = {0, out_w_ * channels_, channels_};
      places_.image = out_h_ * out_w_ * channels_;
    }
    bias_.assign(static_cast<size_t>(channels_), 0.0F);
    if (bias != nullptr) std::copy_n(bias, channels_, bias_.begin());
    for (int64_t r = 0; r < tap_rows_; ++r) {
      for (int64_t d = 0; d < depth_; ++d) {
        for (int64_t k = 0; k < taps_; ++k) {
          const float* from = weights.data() + ((r * taps_ + k) * depth_ + d) * channels_;
          weights_.insert(weights_.end(), from, from + channels_);
        }
      }
    }
    // Tiles of a line, as even as can be.
    const int64_t lanes = IsaPlanar().lanes, vectors = (out_w_ + lanes - 1) / lanes;
    const int64_t most = IsaPlanar().vectors[channels_ - 1], tiles = (vectors + most - 1) / most;
    for (int64_t i = 0; i <= tiles; ++i) firsts_.push_back(vectors * i / tiles);
    constexpr int64_t kPartsOfThread = 2;
    parts_ = std::min(batch_ * out_h_, Threads() == 1 ? 1 : kPartsOfThread * Threads());
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(parts_ * PartFloats()) * sizeof(float);
  }
  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const auto* x = static_cast<const float*>(inputs[0]);
    const auto* addend = !steps_.adds ? nullptr : static_cast<const float*>(inputs[addend_]);
    auto* y = static_cast<float*>(outputs[0]);
    const int64_t rows = batch_ * out_h_;
    SharedParallelFor(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        Rows(x, addend, y, rows * part / parts_, rows * (part + 1) / parts_,
             static_cast<float*>(scratch) + part * PartFloats());
      }
    });
    return OkStatus();
  }
  // What is added to a pixel is read before it is written.
  bool may_overwrite(int i) const override { return steps_.adds && i == addend_; }

 private:
  int64_t PartFloats() const { return lines_.rows * depth_ * lines_.pitch; }

  // Rows [begin, end) of the results, counted through all images.
  void Rows(const float* x, const float* addend, float* y, int64_t begin, int64_t end,
            float* ring) const {
    std::fill_n(ring, PartFloats(), 0.0F);
    int64_t held[kMostTapRows];  // by place of the ring: the line of all images that lies there
    std::fill_n(held, kMostTapRows, int64_t{-1});
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / out_h_, first = row % out_h_ * stride_ - top_;
      const float* lines[kMostTapRows];
      for (int64_t r = 0; r < tap_rows_; ++r) {
        const int64_t line = first + r * dilation_h_;
        lines[r] = nullptr;
        if (line < 0 || line >= in_h_) continue;
        const int64_t of_all = image * in_h_ + line, place = line % lines_.rows;
        float* planes = ring + place * depth_ * lines_.pitch;
        if (held[place] != of_all) {
          IsaPlanar().planes(x + of_all * in_w_ * depth_, in_w_, depth_, planes + lines_.left,
                             lines_.pitch);
          held[place] = of_all;
        }
        lines[r] = planes + lines_.left - before_;
      }
      const int64_t at = places_.first + image * places_.image + row % out_h_ * places_.step[1];
      Line(lines, addend == nullptr ? nullptr : addend + at, y + at);
    }
  }

  void Line(const float* const* lines, const float* addend, float* y) const {
    const PlanarLoops& loops = IsaPlanar();
    float results[kPlanarChannels * kPlanarVecs * 16];
    const float* where[kMostTapRows];
    PlanarTile tile;
    tile.lines = where;
    tile.tap_rows = tap_rows_, tile.taps = taps_, tile.tap_step = dilation_w_;
    tile.depth = depth_, tile.pitch = lines_.pitch;
    tile.weights = weights_.data();
    tile.bias = bias_.data();
    tile.y = results;
    if (steps_.clamps && addend == nullptr) tile.low = steps_.low, tile.high = steps_.high;
    const int64_t step = places_.step[2];
    for (size_t i = 0; i + 1 < firsts_.size(); ++i) {
      const int64_t vectors = firsts_[i + 1] - firsts_[i], column = firsts_[i] * loops.lanes;
      for (int64_t r = 0; r < tap_rows_; ++r) {
        where[r] = lines[r] == nullptr ? nullptr : lines[r] + column;
      }
      loops.tile[channels_ - 1][vectors - 1](tile);
      const int64_t width = vectors * loops.lanes, pixels = std::min(width, out_w_ - column);
      const float* more = addend == nullptr ? nullptr : addend + column * step;
      Finish(results, width, pixels, more, step);
      loops.pixels[channels_ - 1](results, width, pixels, y + column * step, step);
    }
  }

  void Finish(float* results, int64_t width, int64_t pixels, const float* addend,
              int64_t step) const {
    if (addend != nullptr) {
      for (int64_t c = 0; c < channels_; ++c) {
        for (int64_t p = 0; p < pixels; ++p) results[c * width + p] += addend[p * step + c];
      }
    }
    const int64_t n = channels_ * width;
    if (steps_.clamps && addend != nullptr) {
      for (int64_t i = 0; i < n; ++i) {
        const float value = results[i] < steps_.low ? steps_.low : results[i];  // NaN stays
        results[i] = value > steps_.high ? steps_.high : value;
      }
    }
    if (steps_.act != nullptr) steps_.act(results, results, n, steps_.alpha);
  }

  const int64_t batch_, depth_, channels_;
  const int64_t in_h_, in_w_, out_h_, out_w_;
  const int64_t tap_rows_, taps_, stride_, dilation_h_, dilation_w_, top_, before_;
  const TiledSteps steps_;
  const int addend_;  // input of the node
  const PlanarLines lines_;
  PixelPlaces places_;
  std::vector<float> weights_, bias_;  // as PlanarTile has them
  std::vector<int64_t> firsts_;        // by tile of a line: its first vector
  int64_t parts_ = 1;                  // of all rows
};

}  // namespace

bool PlanarConv::Suits(const ConvProblem& p) {
  if (!p.channels_last || p.groups != 1 || p.spatial() != 2 || p.out_depth > IsaPlanar().channels ||
      p.strides[1] != 1 || RowsOfWindow(p) > kMostTapRows || p.output.num_elements() == 0 ||
      p.in_depth == 0 || Isa().level == IsaLevel::kBaseline) {
    return false;
  }
  // Pixels of a line fill more of their vectors than channels would.
  const int64_t lanes = IsaPlanar().lanes;
  if (p.out[1] * 2 < lanes) return false;
  // Of more channels the library's loops are no slower over a single tap, or lines of one vector.
  constexpr int64_t kFew = 4;
  const bool taps = p.kernel[0] * p.kernel[1] > 1;
  if (p.out_depth > kFew && (!taps || p.out[1] <= lanes)) return false;
  // The lines of a window stay in the core's cache.
  const PlanarLines lines(p);
  const int64_t floats = NearCacheBytes(int64_t{1} << 20) / 2 / int64_t{sizeof(float)};
  return p.in_depth <= floats && lines.pitch <= floats / (lines.rows * p.in_depth);
}

std::unique_ptr<BoundKernel> BindPlanar(const ConvProblem& p, const TiledSteps& steps, int addend,
                                        std::span<const float> weights, const float* bias,
                                        const PixelPlaces* places) {
  return std::make_unique<BoundPlanarConv>(p, steps, addend, weights, bias, places);
}

StatusOr<std::unique_ptr<BoundKernel>> PlanarConv::Bind(const ConvProblem& p, const Tensor& filter,
                                                        std::span<const float> factors,
                                                        const float* bias, int addend,
                                                        const FusedOps& fused) {
  TiledSteps steps;
  if (!TiledStepsOf(fused, bias, &steps)) return nullptr;
  const auto flat = filter.flat<float>();
  std::vector<float> weights(flat.begin(), flat.end());
  if (!factors.empty()) {
    for (size_t i = 0; i < weights.size(); ++i) weights[i] *= factors[i % factors.size()];
  }
  return BindPlanar(p, steps, addend, weights, steps.has_bias ? bias : nullptr, nullptr);
}

}  // namespace smelt::nn
