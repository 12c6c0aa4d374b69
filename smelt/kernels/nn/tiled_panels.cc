#include "smelt/kernels/nn/tiled_panels.h"

#include <algorithm>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/kept_form.h"
#include "smelt/kernels/common/read_once.h"

namespace smelt::nn {
namespace {

// Panels of which a row is read at once: neighbors lie in the same pages.
constexpr int64_t kPanelsAtOnce = 8;

// Columns [from, from + width) of row r of matrices [k, channels] that lie turned, for 16 rows at a
// time: a cache line of each column.
constexpr int64_t kTurnedRows = 16;

void PackTurned(const float* w, int64_t k, int64_t begin, int64_t end, int64_t width, int64_t step,
                float* to) {
  for (int64_t r = begin; r < end; r += kTurnedRows, to += kTurnedRows * step) {
    const int64_t rows = std::min(kTurnedRows, end - r);
    for (int64_t c = 0; c < width; ++c) {
      for (int64_t i = 0; i < rows; ++i) to[i * step + c] = w[c * k + r + i];
    }
  }
}

// A row of a panel: `width` weights, times factors where there are some, and zeros behind them.
void FinishRow(int64_t width, int64_t step, const float* factors, float* row) {
  if (factors != nullptr) {
    for (int64_t c = 0; c < width; ++c) row[c] *= factors[c];
  }
  std::fill(row + width, row + step, 0.0f);
}

// As TiledWeights::Pack.
void PackPanels(const float* w, int64_t k, int64_t channels, bool turned,
                std::span<const float> factors, int64_t first, int64_t last, int64_t begin,
                int64_t end, float* to) {
  const TiledPanels panels(channels);
  const int64_t rows = end - begin, lanes = panels.lanes;
  const auto column = [&](int64_t panel) { return panels.First(panel) * lanes; };
  const auto width = [&](int64_t panel) {
    return std::min(column(panel + 1), channels) - column(panel);
  };
  const auto factors_of = [&](int64_t panel) {
    return factors.empty() ? nullptr : factors.data() + column(panel);
  };
  if (turned) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t step = column(i + 1) - column(i);
      PackTurned(w + column(i) * k, k, begin, end, width(i), step, to);
      for (int64_t r = 0; r < rows; ++r, to += step) FinishRow(width(i), step, factors_of(i), to);
    }
    return;
  }
  for (int64_t from = first; from < last; from += kPanelsAtOnce) {
    const int64_t until = std::min(last, from + kPanelsAtOnce);
    const int64_t columns = std::min(column(until), channels) - column(from);
    for (int64_t r = begin; r < end; ++r) {
      if (r + kRowsAhead < end)
        PrefetchRow(w + (r + kRowsAhead) * channels + column(from), columns);
      for (int64_t i = from; i < until; ++i) {
        const int64_t step = column(i + 1) - column(i);
        float* row = to + (column(i) - column(from)) * rows + (r - begin) * step;
        std::copy_n(w + r * channels + column(i), width(i), row);
        FinishRow(width(i), step, factors_of(i), row);
      }
    }
    to += (column(until) - column(from)) * rows;
  }
}

}  // namespace

StatusOr<Tensor> PackTiled(const Tensor& weights, int64_t k, int64_t channels, bool turned,
                           std::span<const float> factors, Allocator* allocator) {
  const TiledPanels panels(channels);
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{k, panels.vectors * panels.lanes}));
  const float* w = weights.data<float>();
  const auto fill = [&](Tensor& packed) {
    float* to = packed.data<float>();
    ParallelFor(panels.count, kPanelsAtOnce, [&](int64_t begin, int64_t end) {
      PackPanels(w, k, channels, turned, factors, begin, end, 0, k,
                 to + panels.First(begin) * panels.lanes * k);
    });
    DropOriginal(weights);
    return OkStatus();
  };
  return KeptOrMade(weights,
                    absl::StrCat("tiles ", k, " ", channels, " ", panels.lanes, " ", panels.widest,
                                 turned ? " turned" : ""),
                    factors, Dtype::kFloat, shape, allocator, fill);
}

StatusOr<std::unique_ptr<const TiledWeights>> TiledWeights::Of(std::shared_ptr<TiledForms> forms,
                                                               const Tensor& weights, int64_t k,
                                                               int64_t channels, bool turned,
                                                               std::span<const float> factors) {
  std::vector<float> own(factors.begin(), factors.end());
  const auto pack = [=](Allocator* a) { return PackTiled(weights, k, channels, turned, own, a); };
  ASSIGN_OR_RETURN(auto form, LaterForm::Of(std::move(forms), weights, std::monostate(), pack));
  return std::unique_ptr<const TiledWeights>(
      new TiledWeights(std::move(form), weights, k, channels, turned, std::move(own)));
}

void TiledWeights::Pack(int64_t first, int64_t last, int64_t begin, int64_t end, float* to) const {
  PackPanels(raw_.data<float>(), k_, channels_, turned_, factors_, first, last, begin, end, to);
}

int64_t GroupsOfPanels(int64_t count, int64_t most) {
  const int64_t threads = Threads();
  const int64_t groups = (count + most - 1) / most;
  return std::min(count, (groups + threads - 1) / threads * threads);
}

std::vector<float> PaddedBias(const float* bias, int64_t channels) {
  const TiledPanels panels(channels);
  std::vector<float> padded(static_cast<size_t>(panels.vectors * panels.lanes), 0.0f);
  if (bias != nullptr) std::copy_n(bias, channels, padded.begin());
  return padded;
}

}  // namespace smelt::nn
