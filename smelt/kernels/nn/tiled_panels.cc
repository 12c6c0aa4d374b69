#include "smelt/kernels/nn/tiled_panels.h"

#include <algorithm>

#include "smelt/kernels/common/kept_form.h"

namespace smelt::nn {
namespace {

// Columns [from, from + width) of row r of matrices [k, channels] that lie turned, for 16 rows at a
// time: a cache line of each column.
constexpr int64_t kTurnedRows = 16;

void PackTurned(const float* w, int64_t k, int64_t width, int64_t step, float* to) {
  for (int64_t r = 0; r < k; r += kTurnedRows) {
    const int64_t rows = std::min(kTurnedRows, k - r);
    for (int64_t c = 0; c < width; ++c) {
      for (int64_t i = 0; i < rows; ++i) to[(r + i) * step + c] = w[c * k + r + i];
    }
  }
}

}  // namespace

StatusOr<Tensor> PackTiled(const Tensor& weights, int64_t k, int64_t channels, bool turned,
                           std::span<const float> factors, Allocator* allocator) {
  const TiledPanels panels(channels);
  const int64_t padded = panels.vectors * panels.lanes;
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{k, padded}));
  const float* w = weights.data<float>();
  const auto fill = [&](Tensor& packed) {
    float* to = packed.data<float>();
    for (int64_t i = 0; i < panels.count; ++i) {
      const int64_t from = panels.First(i) * panels.lanes;
      const int64_t step = panels.First(i + 1) * panels.lanes - from;
      const int64_t width = std::min(from + step, channels) - from;
      if (turned) PackTurned(w + from * k, k, width, step, to);
      for (int64_t r = 0; r < k; ++r, to += step) {
        if (!turned) std::copy_n(w + r * channels + from, width, to);
        if (!factors.empty()) {
          for (int64_t c = 0; c < width; ++c) to[c] *= factors[static_cast<size_t>(from + c)];
        }
        std::fill(to + width, to + step, 0.0f);
      }
    }
    return OkStatus();
  };
  return KeptOrMade(weights,
                    absl::StrCat("tiles ", k, " ", channels, " ", panels.lanes, " ", panels.widest,
                                 turned ? " turned" : ""),
                    factors, Dtype::kFloat, shape, allocator, fill);
}

std::vector<float> PaddedBias(const float* bias, int64_t channels) {
  const TiledPanels panels(channels);
  std::vector<float> padded(static_cast<size_t>(panels.vectors * panels.lanes), 0.0f);
  if (bias != nullptr) std::copy_n(bias, channels, padded.begin());
  return padded;
}

}  // namespace smelt::nn
